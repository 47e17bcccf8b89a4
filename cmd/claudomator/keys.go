package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// keys turns Ctrl-C, SIGTERM and the end of the terminal into the end of a context:
// what a server of ours has started is then ended with it. A command may take
// Ctrl-C over; after it has given it back, one more ends the process at once:
// what then keeps it is the tidying that the person does not wait for.
type keys struct {
	end func()

	mu      sync.Mutex
	taker   chan struct{}
	returns bool // it was taken over, and given back
}

// listen begins; it lasts as long as the process.
func listen(ctx context.Context) (context.Context, *keys) {
	ctx, cancel := context.WithCancel(ctx)
	k := &keys{end: cancel}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for s := range signals {
			k.press(s)
		}
	}()
	return ctx, k
}

func (k *keys) press(s os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case s == os.Interrupt && k.taker != nil:
		select {
		case k.taker <- struct{}{}:
		default: // one is not looked at yet
		}
	case s == os.Interrupt && k.returns:
		const interrupted = 130
		os.Exit(interrupted)
	default:
		k.end()
	}
}

// take hands Ctrl-C to the caller until release.
func (k *keys) take() (pressed <-chan struct{}, release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taker = make(chan struct{}, 1)
	return k.taker, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.taker, k.returns = nil, true
	}
}
