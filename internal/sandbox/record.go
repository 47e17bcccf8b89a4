package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Record is what the state directory holds of a run that is not known to be
// over.
type Record struct {
	ID      string    `json:"id"`
	Level   Level     `json:"level"`
	Started time.Time `json:"started"`
	// Boot identifies the life of the machine: after a reboot no process of
	// the run can be left and process ids mean nothing.
	Boot string `json:"boot"`
	// Cgroup is the run's own cgroup as an absolute path; empty where there
	// is none.
	Cgroup string `json:"cgroup,omitempty"`
	// PID and StartTime identify the main process; zero in the instant
	// between the record's first writing and the program's start.
	PID       int    `json:"pid,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
}

const recordSuffix = ".run.json"

func (h *Host) recordPath(id string) string { return filepath.Join(h.dir, id+recordSuffix) }

// reserve writes the record of a new run. Of two runs with one id one fails.
func (h *Host) reserve(r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record of run %s: %w", r.ID, err)
	}
	file, err := os.OpenFile(h.recordPath(r.ID), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: a run of this id is recorded; sweep it first", ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("record run: %w", err)
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("record run: %w", err), h.forget(r.ID))
	}
	return nil
}

// save replaces the record whole. It is not synced: it must survive a killed
// server, and after a power cut there is nothing left to find.
func (h *Host) save(r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record of run %s: %w", r.ID, err)
	}
	path := h.recordPath(r.ID)
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("record run: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("record run: %w", err)
	}
	return nil
}

func (h *Host) forget(id string) error {
	_ = os.Remove(h.recordPath(id) + ".new") // of a save that was cut off
	if err := os.Remove(h.recordPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of run: %w", err)
	}
	return nil
}

// load reads a record. A missing or torn one still gives what follows from
// the id alone, so that Sweep works from it.
func (h *Host) load(id string) Record {
	record := Record{ID: id, Level: LevelNone, Boot: h.machine.boot}
	data, err := os.ReadFile(h.recordPath(id))
	if err != nil {
		return record
	}
	var read Record
	if json.Unmarshal(data, &read) != nil || read.ID != id {
		return record
	}
	return read
}

// Leftovers lists the runs recorded and not cleaned up, oldest first: those of
// a server that was killed, those whose End failed, and those alive now.
func (h *Host) Leftovers(context.Context) ([]Record, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, fmt.Errorf("list left-over runs: %w", err)
	}
	var records []Record
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), recordSuffix)
		if ok && checkID(id) == nil {
			records = append(records, h.load(id))
		}
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return records, nil
}
