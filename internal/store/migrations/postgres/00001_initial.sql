-- +goose Up

-- Identifiers compare byte by byte, as SQLite's do: cursors and prefixes are
-- ranges of them.

-- One row per tree: its version, and the summary that other trees, the clock
-- and the inbox read. Times are microseconds since 1970, 0 for none.
CREATE TABLE trees (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version      BIGINT NOT NULL,
    project_id   TEXT COLLATE "C" NOT NULL,
    story_id     TEXT COLLATE "C" NOT NULL,
    current_task TEXT COLLATE "C" NOT NULL,
    state        TEXT NOT NULL,
    head         TEXT NOT NULL,
    accepted     TEXT NOT NULL,
    landed       BIGINT NOT NULL,
    is_open      BIGINT NOT NULL,
    wake_at      BIGINT NOT NULL,
    inbox        TEXT NOT NULL, -- JSON, empty when nothing needs a person
    CONSTRAINT trees_state CHECK (state IN ('PENDING', 'QUEUED', 'RUNNING', 'BLOCKED', 'READY', 'COMPLETED', 'FAILED', 'TIMED_OUT', 'BUDGET_EXCEEDED', 'CANCELLED'))
);
CREATE INDEX trees_open ON trees (id) WHERE is_open = 1;
CREATE INDEX trees_wake ON trees (wake_at) WHERE wake_at > 0;
CREATE INDEX trees_inbox ON trees (id) WHERE inbox <> '';

-- Columns are what queries ask for; body and book hold the rest as JSON.
CREATE TABLE tasks (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tree_id           TEXT COLLATE "C" NOT NULL,
    parent_id         TEXT COLLATE "C" NOT NULL,
    story_id          TEXT COLLATE "C" NOT NULL,
    project_id        TEXT COLLATE "C" NOT NULL,
    top               BIGINT NOT NULL, -- 1: no parent, and not apart: no judge, planner or retro
    shown             BIGINT NOT NULL, -- 0: superseded, or apart
    created_at        BIGINT NOT NULL,
    state             TEXT NOT NULL,
    blocked_on        TEXT NOT NULL,
    patience           BIGINT NOT NULL, -- of its priority: how much older it must be to go before an urgent one
    current_execution TEXT COLLATE "C" NOT NULL,
    queued_at         BIGINT NOT NULL, -- when that execution was queued
    agent             TEXT NOT NULL, -- the type it asks for
    name              TEXT NOT NULL,
    tags              TEXT NOT NULL, -- JSON array
    body              TEXT NOT NULL,
    book              TEXT NOT NULL,
    description       TEXT NOT NULL,
    CONSTRAINT tasks_state CHECK (state IN ('PENDING', 'QUEUED', 'RUNNING', 'BLOCKED', 'READY', 'COMPLETED', 'FAILED', 'TIMED_OUT', 'BUDGET_EXCEEDED', 'CANCELLED'))
);
-- Lists go by (created_at, id), newest first, below whatever they filter by.
CREATE INDEX tasks_all ON tasks (created_at, id);
CREATE INDEX tasks_shown ON tasks (created_at, id) WHERE shown = 1;
CREATE INDEX tasks_top ON tasks (created_at, id) WHERE shown = 1 AND top = 1;
CREATE INDEX tasks_project ON tasks (project_id, created_at, id) WHERE shown = 1;
CREATE INDEX tasks_project_top ON tasks (project_id, created_at, id) WHERE shown = 1 AND top = 1;
CREATE INDEX tasks_state_shown ON tasks (state, created_at, id) WHERE shown = 1;
CREATE INDEX tasks_project_state ON tasks (project_id, state, created_at, id) WHERE shown = 1;
CREATE INDEX tasks_tree ON tasks (tree_id, created_at, id);
CREATE INDEX tasks_parent ON tasks (parent_id, created_at, id) WHERE parent_id <> '';
CREATE INDEX tasks_story ON tasks (story_id, created_at, id) WHERE story_id <> '';
CREATE INDEX tasks_name ON tasks (name) WHERE shown = 1;
CREATE INDEX tasks_slot ON tasks ((queued_at + patience), id) WHERE state = 'QUEUED' AND blocked_on = 'slot';

-- An execution belongs to the tree of its task: it has no tree of its own, so
-- that a task which moves takes its executions along.
CREATE TABLE executions (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    task_id     TEXT COLLATE "C" NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    number      BIGINT NOT NULL,
    state       TEXT NOT NULL,
    agent       TEXT NOT NULL, -- the type that ran; empty until it began
    node        TEXT NOT NULL,
    fence       BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    job_id      BIGINT NOT NULL,
    token_hash  TEXT NOT NULL,
    cost_usd    DOUBLE PRECISION NOT NULL,
    created_at  BIGINT NOT NULL,
    body        TEXT NOT NULL,
    CONSTRAINT executions_state CHECK (state IN ('queued', 'running', 'ended', 'lost')),
    CONSTRAINT executions_kind CHECK (kind IN ('agent', 'submit', 'gates', 'deploy', 'smoke'))
);
CREATE INDEX executions_task ON executions (task_id, kind, number);
CREATE INDEX executions_queued ON executions (state, kind, created_at, id) WHERE state = 'queued';
CREATE INDEX executions_running ON executions (node) WHERE state = 'running';
CREATE INDEX executions_token ON executions (token_hash) WHERE token_hash <> '';
CREATE INDEX executions_cost ON executions (state, cost_usd);

CREATE TABLE merges (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    task_id    TEXT COLLATE "C" NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    status     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    body       TEXT NOT NULL,
    CONSTRAINT merges_status CHECK (status IN ('running', 'conflicted', 'landed', 'nothing_to_land', 'refused', 'aborted'))
);
CREATE INDEX merges_task ON merges (task_id, created_at, id);

CREATE TABLE stories (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tree_id    TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    epic_id    TEXT COLLATE "C" NOT NULL,
    status     TEXT NOT NULL,
    name       TEXT NOT NULL,
    goal       TEXT NOT NULL,
    branch     TEXT NOT NULL,
    is_over    BIGINT NOT NULL, -- 1: DEPLOYED or CANCELLED, and its branch free
    created_at BIGINT NOT NULL,
    body       TEXT NOT NULL,
    CONSTRAINT stories_status CHECK (status IN ('DRAFT', 'IN_PROGRESS', 'VALIDATING', 'NEEDS_FIX', 'REVIEW_READY', 'SHIPPABLE', 'SHIPPING', 'DEPLOYED', 'DEPLOY_FAILED', 'CANCELLED'))
);
CREATE INDEX stories_all ON stories (created_at, id);
CREATE INDEX stories_of_status ON stories (status, created_at, id);
CREATE INDEX stories_project ON stories (project_id, created_at, id);
CREATE INDEX stories_project_status ON stories (project_id, status, created_at, id);
CREATE INDEX stories_epic ON stories (epic_id, created_at, id) WHERE epic_id <> '';
CREATE INDEX stories_epic_status ON stories (epic_id, status, created_at, id) WHERE epic_id <> '';
CREATE INDEX stories_name ON stories (name);
CREATE INDEX stories_branch ON stories (project_id, created_at, id, branch) WHERE is_over = 0 AND branch <> '';

CREATE TABLE epics (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX epics_name ON epics (name);

-- Which other trees the root of a tree depends on, by their position.
CREATE TABLE edges (
    tree_id  TEXT COLLATE "C" NOT NULL,
    position TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tree_id, position)
);
CREATE INDEX edges_position ON edges (position, tree_id);

-- Counters that only a commit raises: the last event's seq, and the version of
-- the edges. A row, not a sequence: its lock makes seq the order of commits.
CREATE TABLE counters (
    name  TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('events', 0), ('edges', 0);

CREATE TABLE events (
    seq        BIGINT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id   TEXT NOT NULL,
    tree_id    TEXT COLLATE "C" NOT NULL,
    task_id    TEXT COLLATE "C" NOT NULL,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL
);
CREATE INDEX events_tree ON events (tree_id, seq);
CREATE INDEX events_task ON events (task_id, seq) WHERE task_id <> '';

CREATE TABLE idempotency (
    key      TEXT NOT NULL PRIMARY KEY,
    request  TEXT NOT NULL,
    response TEXT NOT NULL,
    at       BIGINT NOT NULL
);

CREATE TABLE projects (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name    TEXT NOT NULL,
    removed BIGINT NOT NULL,
    version BIGINT NOT NULL,
    body    TEXT NOT NULL
);
CREATE UNIQUE INDEX projects_name ON projects (name) WHERE removed = 0;

CREATE TABLE roles (
    project TEXT COLLATE "C" NOT NULL, -- its id; empty: for all projects
    name    TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    active  BIGINT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (project, name, version)
);

CREATE TABLE tokens (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    hash       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    CONSTRAINT tokens_scope CHECK (scope IN ('admin', 'read'))
);
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);
