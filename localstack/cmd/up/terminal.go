//go:build linux || darwin

package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// takeTerminal makes this process the one that Ctrl-C reaches. The terminal sends it to all of a process group, so make or
// go run, which started us, would get it too: make never ends with status 0 after that, whatever we do.
//
// Nothing happens where there is no terminal, where we are in the background, or where a shell gave us a group of our own
// already. What it returns gives the terminal back.
func takeTerminal() (giveBack func()) {
	giveBack = func() {}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return giveBack
	}
	before := syscall.Getpgrp()
	if foreground, err := terminalGroup(tty, syscall.TIOCGPGRP, 0); err != nil || foreground != before || before == os.Getpid() {
		_ = tty.Close()
		return giveBack
	}
	// Ctrl-Z would stop us alone, and the shell, which waits for make, would not come back.
	// SIGTTOU would stop us for taking the terminal from the background.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTOU)
	if err := syscall.Setpgid(0, 0); err != nil {
		_ = tty.Close()
		return giveBack
	}
	// Should the terminal refuse, Ctrl-C reaches the others alone: make passes nothing on, so go back to them.
	if _, err := terminalGroup(tty, syscall.TIOCSPGRP, os.Getpid()); err != nil {
		_ = syscall.Setpgid(0, before)
		_ = tty.Close()
		return giveBack
	}
	return func() {
		_, _ = terminalGroup(tty, syscall.TIOCSPGRP, before)
		_ = tty.Close()
	}
}

// terminalGroup reads or sets a terminal's foreground process group: tcgetpgrp and tcsetpgrp of POSIX.
func terminalGroup(tty *os.File, request uintptr, group int) (int, error) {
	id := int32(group) //nolint:gosec // a pid_t
	//nolint:gosec // that is how an ioctl takes its argument
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), request, uintptr(unsafe.Pointer(&id))); errno != 0 {
		return 0, errno
	}
	return int(id), nil
}
