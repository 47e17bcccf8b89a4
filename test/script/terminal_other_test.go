//go:build !linux

package script_test

import (
	"errors"
	"os"
	"syscall"
)

var errTerminal = errors.New("terminals are made on Linux only: begin the script with [!linux] skip")

func openTerminal() (keyboard, tty *os.File, err error) { return nil, nil, errTerminal }

func resize(*os.File, int, int) error { return errTerminal }

func ownTerminal() *syscall.SysProcAttr { return nil }
