package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops what was typed on the terminal and not read yet.
func forgetTyped() {
	_ = unix.IoctlSetInt(int(os.Stdin.Fd()), unix.TCFLSH, unix.TCIFLUSH) // fails where it is no terminal: nothing to drop
}
