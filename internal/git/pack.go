package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
)

// Objects travel between repositories as a pack: pack-objects at one end, a
// strict unpacker at the other. Neither reads the configuration of a repository
// that is not ours, and forged objects do not survive the receiving end.

// transfer describes which objects go where.
type transfer struct {
	from   []string // environment of the sending process
	to     []string // environment of the receiving process
	want   []string // tips
	have   []string // what the receiver has
	strict bool     // check every object and link (hostile sender)
}

// unpackLimit is git's own: fewer objects than this are stored loose.
const unpackLimit = 100

func (g *Git) transfer(ctx context.Context, t transfer) error {
	var revs strings.Builder
	for _, w := range t.want {
		revs.WriteString(w + "\n")
	}
	for _, h := range t.have {
		revs.WriteString("^" + h + "\n")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fail(KindFailed, "open a pipe").because(err)
	}
	defer closePipes(r)
	send, err := g.start(ctx, command{
		args: []opt{"pack-objects", "-q", "--revs", "--thin", "--stdout", "--delta-base-offset"}, env: t.from, lasting: true,
	}, strings.NewReader(revs.String()), w)
	closePipes(w)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, send.cancel)
	defer stop()
	receiveErr := g.receive(ctx, t, r)
	closePipes(r) // lets the sender end when the receiver gave up
	sendErr := send.wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if sendErr != nil && (receiveErr == nil || errors.Is(receiveErr, errNoPack)) {
		return sendErr
	}
	return receiveErr
}

// closePipes closes our ends of pipes. Whether what went through them arrived is
// the processes' to say.
func closePipes(ends ...*os.File) {
	for _, f := range ends {
		_ = f.Close()
	}
}

var errNoPack = errors.New("the sender sent no pack")

// receive reads the pack's header to choose between loose objects and a pack.
func (g *Git) receive(ctx context.Context, t transfer, pack io.Reader) error {
	in := bufio.NewReader(pack)
	head, err := in.Peek(12)
	if err != nil || !bytes.HasPrefix(head, []byte("PACK")) {
		return fail(KindFailed, "receive objects").because(errNoPack)
	}
	count := binary.BigEndian.Uint32(head[8:])
	if count == 0 {
		_, err := io.Copy(io.Discard, in)
		return err
	}
	c := command{args: []opt{"unpack-objects", "-q"}, env: t.to, stdin: in}
	if t.strict {
		c.args = []opt{"unpack-objects", "-q", "--strict"}
	}
	if count >= unpackLimit {
		c.args = []opt{"index-pack", "--stdin", "--fix-thin"}
		if t.strict {
			c.args = []opt{"index-pack", "--stdin", "--fix-thin", "--strict"}
		}
	}
	_, err = g.run(ctx, c)
	return err
}

// alternates builds the environment entry for one extra object directory. The
// quoted form lets a path hold a colon.
func alternates(objects string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(objects)
	return `GIT_ALTERNATE_OBJECT_DIRECTORIES="` + quoted + `"`
}
