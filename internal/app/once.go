package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/claudomator/claudomator/internal/work"
)

// once does what a request asks, and keeps the id of what that made or changed with
// the request's key; when an equal request with the key has done it, or is quicker,
// it only answers that one's id. do commits what it is given together with its
// change. Without a key it is done each time.
func (s *Service) once(ctx context.Context, by work.Actor, key string, request any, id string, do func(*work.Idempotency) error) (string, error) {
	idem, known, err := s.repeated(ctx, by, key, request)
	if err != nil || known != "" {
		return known, err
	}
	if idem == nil {
		return id, do(nil)
	}
	idem.Response = id
	refused := do(idem)
	if refused == nil {
		return id, nil
	}
	// Whatever it was refused with: there may be no second of what the first has made.
	if _, known, err = s.repeated(ctx, by, key, request); known != "" || err != nil {
		return known, err
	}
	return "", refused
}

// repeated finds the id that an equal request with the same key has answered with
// before; none, and what to keep of this one, where it is new. Without a key both are
// nil.
func (s *Service) repeated(ctx context.Context, by work.Actor, key string, request any) (*work.Idempotency, string, error) {
	if key == "" {
		return nil, "", nil
	}
	if len(key) > 255 {
		return nil, "", work.Errorf(work.Invalid, "the idempotency key is %d bytes long, at most 255 are taken", len(key))
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, "", work.Errorf(work.Internal, "digest the request: %w", err)
	}
	sum := sha256.Sum256(append([]byte(fmt.Sprintf("%T", request)), body...))
	idem := &work.Idempotency{Key: by.ID + "/" + key, Request: hex.EncodeToString(sum[:]), At: s.o.Now()}
	known, err := s.o.Lookup.Idempotent(ctx, idem.Key)
	if err != nil || known == nil {
		return idem, "", err
	}
	if known.Request != idem.Request {
		return nil, "", work.Errorf(work.Conflict, "the idempotency key was used for another request").WithReason("key_reused").WithHint("use a new key for a new request")
	}
	return idem, known.Response, nil
}
