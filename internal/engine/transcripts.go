package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/claudomator/claudomator/internal/work"
)

// A stored transcript is a plain file first. When its run has been over for a while
// it is compressed, and the plain file goes last: whatever was cut off on the way, the
// whole text is in the plain file where there is one, else in the compressed one.
const (
	plainText  = ".jsonl"
	compressed = plainText + ".zst"
	unfinished = compressed + ".part"

	compressAfter = time.Hour // what was written just now is read soon
	notWorthIt    = 4 << 10   // a block of the disk, of which even one byte takes all
	window        = 1 << 20   // bounds the memory of both directions
)

func transcriptDir(dataDir string) string { return filepath.Join(dataDir, "transcripts") }

// Transcripts opens stored transcripts, for the surfaces.
type Transcripts struct{ DataDir string }

// Transcript opens an execution's JSON lines at a byte offset of the plain text.
func (s Transcripts) Transcript(ctx context.Context, id work.ExecutionID, offset int64) (io.ReadCloser, error) {
	path := filepath.Join(transcriptDir(s.DataDir), string(id))
	in, err := openPlain(path+plainText, offset)
	if errors.Is(err, fs.ErrNotExist) {
		in, err = openCompressed(ctx, path+compressed, offset)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, work.Errorf(work.NotFound, "execution %s has no transcript", id).WithHint("it has not started yet, or its transcript was removed after its retention time")
	}
	if err != nil {
		return nil, work.Errorf(work.Internal, "read the transcript of %s: %w", id, err)
	}
	return in, nil
}

func openPlain(path string, offset int64) (io.ReadCloser, error) {
	file, err := os.Open(path) //nolint:gosec // in the data folder
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// openCompressed reads what comes before the offset, too: some milliseconds for
// each megabyte.
func openCompressed(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	file, err := os.Open(path) //nolint:gosec // in the data folder
	if err != nil {
		return nil, err
	}
	// One at a time means that no goroutines are left when it is closed.
	text, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	in := decompressing{text, file}
	if _, err := io.CopyN(io.Discard, untilDone{ctx, text}, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// decompressing reads the text of a compressed file.
type decompressing struct {
	*zstd.Decoder
	file *os.File
}

func (d decompressing) Close() error {
	d.Decoder.Close()
	return d.file.Close()
}

// untilDone reads until nobody waits for it any more.
type untilDone struct {
	ctx context.Context //nolint:containedctx // of the one call that reads it
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

// tidyTranscripts removes the transcripts that were kept for long enough, and what
// was cut off, and compresses the others. What a run here still has open is left
// alone, however long it has been silent: it was opened only after the run was held,
// and an execution begins once.
func (e *Engine) tidyTranscripts(ctx context.Context, now time.Time) error {
	dir := transcriptDir(e.o.DataDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all error
	full := false
	for _, entry := range entries {
		id, kind, _ := strings.Cut(entry.Name(), ".")
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || e.carries(work.ExecutionID(id)) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		age := now.Sub(info.ModTime())
		switch kind = "." + kind; {
		case kind == unfinished, (kind == plainText || kind == compressed) && age > e.o.Retention.Transcripts:
			err = os.Remove(path)
		case kind == plainText && age > compressAfter && info.Size() > notWorthIt && !full:
			err = compress(ctx, path, info)
			full = errors.Is(err, syscall.ENOSPC) // then the next ones fail as well
		}
		if ctx.Err() != nil {
			return all
		}
		if !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// compress puts the compressed form of a transcript in the place of its plain text.
func compress(ctx context.Context, plain string, info fs.FileInfo) error {
	path := strings.TrimSuffix(plain, plainText)
	if err := writeCompressed(ctx, plain, path+unfinished, info); err != nil {
		return errors.Join(fmt.Errorf("compress the transcript %s: %w", info.Name(), err), os.Remove(path+unfinished))
	}
	if err := os.Rename(path+unfinished, path+compressed); err != nil {
		return errors.Join(err, os.Remove(path+unfinished))
	}
	if err := syncDir(filepath.Dir(plain)); err != nil {
		return err
	}
	return os.Remove(plain)
}

// writeCompressed writes a file's compressed form, as old as the file is: retention
// counts from that. It is on the disk when this returns.
func writeCompressed(ctx context.Context, from, to string, info fs.FileInfo) (err error) {
	in, err := os.Open(from) //nolint:gosec // in the data folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // in the data folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return err
	}
	n, err := z.ReadFrom(untilDone{ctx, in})
	if err := errors.Join(err, z.Close()); err != nil {
		return err
	}
	if n != info.Size() {
		return fmt.Errorf("it had %d bytes, and then %d", info.Size(), n)
	}
	if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return out.Sync()
}

// syncDir makes sure that a name in a folder outlasts a loss of power.
func syncDir(dir string) (err error) {
	d, err := os.Open(dir) //nolint:gosec // in the data folder
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
