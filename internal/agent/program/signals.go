package program

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// DefaultSignals resets ignored signals for commands that start from now on. A shell ignores
// signals in background processes and nohup in what it runs, and children inherit that: Ctrl-C in a
// session would end nothing, and Python would raise no KeyboardInterrupt. This process continues to
// ignore them.
func DefaultSignals() { takeSignals() }

var takeSignals = sync.OnceFunc(func() {
	unheeded := make(chan os.Signal, 1) // the runtime resets caught signals in a child
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM} {
		if signal.Ignored(s) {
			signal.Notify(unheeded, s)
		}
	}
})
