package program

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// DefaultSignals lets commands that are started from now on get the signals that this process was told to
// ignore, as a shell does for what it starts in the background and nohup for what it runs: a child inherits what
// is ignored, and there Ctrl-C in a terminal would end nothing and Python would raise no KeyboardInterrupt. This
// process itself goes on as if they were ignored.
func DefaultSignals() { takeSignals() }

var takeSignals = sync.OnceFunc(func() {
	unheeded := make(chan os.Signal, 1) // what is caught here is given its default in a child
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM} {
		if signal.Ignored(s) {
			signal.Notify(unheeded, s)
		}
	}
})
