package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudomator/claudomator/internal/api"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/telemetry"
	"github.com/claudomator/claudomator/internal/work"
)

// serve runs a server until ctx ends; its URL is the first line on stdout.
func serve(ctx context.Context, o cli.ServeOptions) error {
	cfg, err := load(o.Settings)
	if err != nil {
		return err
	}
	return run(ctx, cfg, os.Stderr, func(url string) {
		_, _ = fmt.Println(url)
	})
}

func load(s cli.Settings) (*config.Config, error) {
	cfg, err := config.Load(config.Input{File: s.File, Environ: os.Environ(), Flags: s.Flags})
	if err != nil {
		return nil, work.Errorf(work.Invalid, "%w", err).WithReason("configuration").WithHint("see docs/config.schema.json for the settings")
	}
	return cfg, nil
}

// run builds a server, lets ready know its URL, and serves until ctx ends.
func run(ctx context.Context, cfg *config.Config, logTo io.Writer, ready func(url string)) (err error) {
	s := &server{cfg: cfg}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.build(ctx, logTo); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return work.Errorf(work.Unavailable, "listen on %s: %w", cfg.Addr, err).WithHint("choose another address with --addr")
	}
	url := "http://" + listener.Addr().String()
	s.engine = engine.New(s.engineOptions(url))
	return s.work(ctx, listener, url, ready)
}

// server is everything that was built, to be closed in reverse.
type server struct {
	cfg     *config.Config
	log     *slog.Logger
	mask    *telemetry.Mask // hides in the log
	secrets *telemetry.Mask // hides in transcripts
	node    string
	host    *sandbox.Host
	vaults  *engine.Vaults
	queue   *engine.Queue
	store   *store.Store
	agents  engine.Catalog
	service *app.Service
	engine  *engine.Engine
	closers []func() error
}

func (s *server) close() error {
	var all error
	for i := len(s.closers) - 1; i >= 0; i-- {
		all = errors.Join(all, s.closers[i]())
	}
	return all
}

func (s *server) build(ctx context.Context, logTo io.Writer) (err error) {
	secret, err := s.dataDir()
	if err != nil {
		return err
	}
	s.mask = telemetry.NewMask(secret, s.cfg.Database.Reveal())
	s.secrets = telemetry.NewMask(secret, s.cfg.Database.Reveal())
	if s.log, err = telemetry.NewLogger(logTo, telemetry.LogOptions{Level: s.cfg.Log.Level, Format: s.cfg.Log.Format, Mask: s.mask}); err != nil {
		return err
	}
	if s.host, err = sandbox.Open(sandbox.Options{StateDir: s.path("runs")}); err != nil {
		return err
	}
	g, err := git.New(ctx, git.Options{Environ: os.Environ()})
	if err != nil {
		return work.Errorf(work.Unavailable, "%w", err).WithHint("install git 2.38 or newer")
	}
	s.vaults = engine.NewVaults(g, s.cfg.DataDir)
	s.closers = append(s.closers, func() error { s.vaults.Close(); return nil })
	if err := s.database(ctx); err != nil {
		return err
	}
	if err := s.openAgents(); err != nil {
		return err
	}
	models := map[string]string{}
	for name, a := range s.cfg.Agents {
		models[name] = a.Model
	}
	s.service = app.New(app.Options{
		Trees: s.store, Lookup: s.store, Lists: s.store, Settings: s.store, Stories: s.store, Tokens: s.store,
		Diffs: s.vaults, Transcripts: engine.Transcripts{DataDir: s.cfg.DataDir}, Agents: s.agents, Repositories: s.vaults, Templates: s.vaults,
		Disk: engine.Disk{DataDir: s.cfg.DataDir, Database: s.databaseFile(), Retention: s.retention()}, Vaults: s.vaults,
		IDs: app.RandomIDs{}, Now: time.Now, Log: s.log,
		Defaults: app.Defaults{
			Agent: s.cfg.Agent, Timeout: s.cfg.Limits.Task, Wall: s.cfg.Limits.Wall, Silence: s.cfg.Limits.Silence, JudgeTimeout: s.cfg.Limits.Judge,
			GateTimeout: s.cfg.Limits.Judge, Isolation: string(sandbox.LevelNone), Models: models, Judges: slices.Sorted(maps.Keys(models)),
		},
		Committed: func(c work.ChangeSet) { s.engine.Committed(c) },
		Reclaim:   func(ctx context.Context, bin bool) (*app.Reclaimed, error) { return s.engine.Reclaim(ctx, bin) },
		Parked:    func(id work.ExecutionID) { s.engine.Park(id) },
	})
	return s.service.EnsureToken(ctx, "local", secret)
}

func (s *server) path(name string) string { return filepath.Join(s.cfg.DataDir, name) }

// dataDir makes the data directory ours: one server at a time, a stable node
// name, and the first token.
func (s *server) dataDir() (secret string, err error) {
	dir, err := filepath.Abs(s.cfg.DataDir)
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w", err)
	}
	s.cfg.DataDir = dir
	if err := os.MkdirAll(s.path("workspaces"), 0o700); err != nil {
		return "", work.Errorf(work.Unavailable, "make the data directory: %w", err).WithHint("choose another with --data-dir")
	}
	lock, err := os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("lock the data directory: %w", err)
	}
	s.closers = append(s.closers, lock.Close)
	if err := seize(lock); err != nil {
		return "", work.Errorf(work.Conflict, "another server uses %s", dir).WithReason("data_dir_in_use").WithHint("stop it, or choose another --data-dir")
	}
	if s.node, err = keep(s.path("node"), app.RandomIDs{}.New); err != nil {
		return "", err
	}
	return keep(s.path("token"), app.NewSecret)
}

// seize locks a file. The lock of a server that was killed may outlive it for a
// moment: a child that it was just starting holds it until that has started.
func seize(lock *os.File) error {
	for tries := 0; ; tries++ {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || tries == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// keep reads a one-line file, or makes it, whole or not at all.
func keep(path string, make func() string) (string, error) {
	text, err := os.ReadFile(path)
	if line := strings.TrimSpace(string(text)); err == nil && line != "" {
		return line, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	line := make()
	return line, writeWhole(path, line+"\n")
}

func writeWhole(path, text string) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(temp, path)
}

func (s *server) database(ctx context.Context) (err error) {
	s.queue = engine.NewQueue()
	where := s.cfg.Database.Reveal()
	if where == "" {
		where = s.cfg.SQLiteFile()
	}
	if s.store, err = store.Open(ctx, store.Config{URL: where, ConnectionHook: s.queue.Hook}, s.queue.Enqueue); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	return s.queue.Open(ctx, s.store.DB(), s.store.Pool(), s.node, s.log)
}

func (s *server) engineOptions(url string) engine.Options {
	bin, err := os.Executable()
	if err != nil {
		bin = os.Args[0]
	}
	perAgent := map[string]int{}
	for name, limits := range s.cfg.Agents {
		perAgent[name] = limits.Slots
	}
	return engine.Options{
		Core: s.service, Schedule: s.store, Tasks: s.store, Queue: s.queue, Vaults: s.vaults, Host: s.host,
		Agents: s.agents, DataDir: s.cfg.DataDir, Node: s.node, Slots: s.cfg.Slots, PerAgent: perAgent,
		Bin: bin, MCPURL: url + "/mcp", Mask: s.mask, Hide: s.secrets.Apply, Now: time.Now, Log: s.log,
		Retention: s.retention(),
		Forge:     &pulls{getenv: os.Getenv, agents: s.cfg.Agents, masks: []*telemetry.Mask{s.mask, s.secrets}},
	}
}

func (s *server) retention() app.Retention {
	return app.Retention{Workspaces: s.cfg.Retention.Workspaces, Bin: s.cfg.Retention.Bin, Transcripts: s.cfg.Retention.Transcripts}
}

// databaseFile is where SQLite keeps the database; "" with another.
func (s *server) databaseFile() string {
	if s.cfg.Database.Reveal() != "" {
		return ""
	}
	return s.cfg.SQLiteFile()
}

// work serves requests and runs the engine until ctx ends, or one of them fails.
func (s *server) work(ctx context.Context, listener net.Listener, url string, ready func(string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	web := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	begin := func() {
		go func() { served <- web.Serve(listener); cancel(errors.New("the web server ended")) }()
		if err := writeWhole(s.path("server"), url+"\n"); err != nil {
			s.log.Error("note the server's address", "error", err)
		}
		ready(url)
	}
	err := s.engine.Run(ctx, begin)
	_ = os.Remove(s.path("server"))
	cancel(nil)
	limit, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if web.Shutdown(limit) != nil {
		_ = web.Close()
	}
	select {
	case end := <-served:
		if !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	default: // never served
	}
	return err
}

// metrics adds the server's own counts to those of the process.
func (s *server) metrics(ctx context.Context) *prometheus.Registry {
	r := telemetry.NewMetrics()
	count := func(name, help, label string, of func(work.Stats) map[string]float64) {
		r.MustRegister(telemetry.NewCounts(name, help, label, func() (map[string]float64, error) {
			stats, err := s.store.Stats(ctx)
			return of(stats), err
		}))
	}
	count("claudomator_tasks", "Tasks that stand at a place, by state.", "state", func(c work.Stats) map[string]float64 { return floats(c.Tasks) })
	count("claudomator_executions", "Executions, by state.", "state", func(c work.Stats) map[string]float64 { return floats(c.Executions) })
	count("claudomator_cost_usd", "What executions have cost.", "currency", func(c work.Stats) map[string]float64 { return map[string]float64{"USD": c.CostUSD} })
	return r
}

func floats[K ~string](counts map[K]int) map[string]float64 {
	out := make(map[string]float64, len(counts))
	for k, n := range counts {
		out[string(k)] = float64(n)
	}
	return out
}

// handler joins the surfaces: running agents at /mcp, people everywhere else.
func (s *server) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	door := app.NewDoor(s.cfg.AllowedHosts)
	mux.Handle("/mcp", mcp.New(mcp.Options{Tools: s.service, Door: door, Version: version(), Log: s.log}))
	mux.Handle("/", api.New(api.Options{
		API: s.service, Auth: s.service.Authenticate, LastSeq: s.store.LastSeq, Version: version(), Log: s.log,
		Metrics: telemetry.MetricsHandler(s.metrics(ctx), s.log), Door: door,
		Admin: mcp.NewAdmin(mcp.AdminOptions{API: s.service, Version: version(), Log: s.log}),
		Ready: func(ctx context.Context) error { return s.store.DB().PingContext(ctx) },
	}))
	return mux
}
