package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops what was typed on the terminal and not read yet.
func forgetTyped() {
	const read = 1                                                        // FREAD
	_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCFLUSH, read) // fails where it is no terminal: nothing to drop
}
