package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/claudomator/claudomator/internal/work"
)

// Config says which database to open.
type Config struct {
	// URL is a postgres:// or postgresql:// URL, or the path of an SQLite file,
	// which is made when missing (its folder is not).
	URL string
	// ConnectionHook, when set, is called with each new connection that can
	// write to an SQLite database, before its first statement: the engine hears
	// there what is committed. Postgres has LISTEN instead (see Pool).
	ConnectionHook sqlite.ConnectionHookFn
	// BeforeStatement, when set, is called before each statement of a write
	// transaction, before its effects are handed on and before its end; its
	// error fails the transaction. Tests break commits with it.
	BeforeStatement func(statement string) error
}

// Enqueue hands effects to the engine inside the transaction of the commit
// that caused them. Inside it nothing but tx may be used: with SQLite there is
// one connection that writes, and the transaction has it.
type Enqueue func(ctx context.Context, tx *sql.Tx, effects []work.Effect) error

// Store keeps everything, in SQLite or Postgres. It is safe for concurrent use.
type Store struct {
	write    *sql.DB // with SQLite one connection: a fair queue, and never "busy"
	read     *sql.DB // with Postgres the same as write
	pool     *pgxpool.Pool
	prepared map[string]*sql.Stmt // statements of commits; SQLite only, pgx keeps its own
	enqueue  Enqueue
	before   func(statement string) error
}

// Open opens the database and brings its tables up to date.
func Open(ctx context.Context, cfg Config, enqueue func(ctx context.Context, tx *sql.Tx, effects []work.Effect) error) (*Store, error) {
	if enqueue == nil {
		return nil, errors.New("open the database: effects have nowhere to go: enqueue is nil")
	}
	s := &Store{enqueue: enqueue, before: cfg.BeforeStatement}
	open := s.openSQLite
	if isPostgres(cfg.URL) {
		open = s.openPostgres
	}
	if err := open(ctx, cfg); err != nil {
		return nil, errors.Join(mapped("open the database", err), s.Close())
	}
	return s, nil
}

func isPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// pragmas of every SQLite connection. NORMAL loses the last commits, never the
// database, when the machine (not only the process) dies. A checkpoint each
// 16 MB, not 4, halves the longest commits. LIKE minds case, as in Postgres.
const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)" +
	"&_pragma=wal_autocheckpoint(4000)&_pragma=foreign_keys(1)&_pragma=case_sensitive_like(1)"

const readers = 4

func (s *Store) openSQLite(ctx context.Context, cfg Config) error {
	if cfg.URL == "" {
		return errors.New("no file is named")
	}
	path, err := filepath.Abs(cfg.URL)
	if err != nil {
		return fmt.Errorf("find %s: %w", cfg.URL, err)
	}
	file := (&url.URL{Scheme: "file", Path: path}).String() + pragmas
	// A driver of its own for each pool: hooks would otherwise hold for every
	// database of the process, and for connections that only read.
	writer := &sqlite.Driver{}
	if cfg.ConnectionHook != nil {
		writer.RegisterConnectionHook(cfg.ConnectionHook)
	}
	s.write = sql.OpenDB(connector{writer, file + "&_txlock=immediate"})
	s.write.SetMaxOpenConns(1)
	s.read = sql.OpenDB(connector{&sqlite.Driver{}, file + "&_query_only=1"})
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	if err := migrate(ctx, s.write, "sqlite"); err != nil {
		return err
	}
	s.prepared = map[string]*sql.Stmt{}
	for _, statement := range commitStatements() {
		ready, err := s.write.PrepareContext(ctx, statement) //nolint:sqlclosecheck // Close closes them all
		if err != nil {
			return fmt.Errorf("prepare %q: %w", statement, err)
		}
		s.prepared[statement] = ready
	}
	return nil
}

// connector opens connections with a driver that is not registered anywhere.
type connector struct {
	driver *sqlite.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) {
	made, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return keepStatements(made)
}

func (c connector) Driver() driver.Driver { return c.driver }

// postgresConnections is how many connections are kept, unless the URL says
// otherwise (pool_max_conns): the engine's listener holds one of them for good.
const postgresConnections = 16

func (s *Store) openPostgres(ctx context.Context, cfg Config) error {
	config, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	if !strings.Contains(cfg.URL, "pool_max_conns=") {
		config.MaxConns = postgresConnections
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	s.write = stdlib.OpenDBFromPool(s.pool)
	s.write.SetMaxIdleConns(0) // the pool below keeps the idle ones
	s.read = s.write
	return migrate(ctx, s.write, "postgres")
}

// DB is the pool that writes, for the engine: with SQLite its one connection.
func (s *Store) DB() *sql.DB { return s.write }

// Pool is Postgres's pool of connections, lent to the engine's listener; nil
// with SQLite.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Close waits for what runs and closes the database.
func (s *Store) Close() error {
	var errs []error
	for _, statement := range s.prepared {
		errs = append(errs, statement.Close())
	}
	if s.read != nil && s.read != s.write {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return errors.Join(errs...)
}
