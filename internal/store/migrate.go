package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// Migrations are numbered files, one folder per database with equal names: only
// their column types differ. A file that was released is never edited.
//
//go:embed migrations
var migrations embed.FS

// migrate brings the tables up to date. Servers that start at once on one
// Postgres take turns.
func migrate(ctx context.Context, db *sql.DB, folder string) (err error) {
	dialect := goose.DialectSQLite3
	if folder == "postgres" {
		dialect = goose.DialectPostgres
		unlock, err := lockSchema(ctx, db)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	files, err := fs.Sub(migrations, "migrations/"+folder)
	if err != nil {
		return fmt.Errorf("find the migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// lockSchema holds a lock of the schema on a connection of its own.
func lockSchema(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	const lock = `SELECT pg_advisory_lock(hashtext('claudomator'), hashtext(current_schema()))`
	const free = `SELECT pg_advisory_unlock(hashtext('claudomator'), hashtext(current_schema()))`
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := conn.ExecContext(ctx, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the schema: %w", err), conn.Close())
	}
	return func() error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), free)
		return errors.Join(err, conn.Close())
	}, nil
}
