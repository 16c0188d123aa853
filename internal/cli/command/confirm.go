package command

import (
	"bufio"
	"context"
	"errors"
	"strings"
)

// Confirmed asks a question. y and yes confirm, and Enter gives the usual answer. Ctrl-C declines at once.
func (a *App) Confirmed(ctx context.Context, question string, usual bool) bool {
	a.Notef("%s", question)
	said := make(chan bool, 1)
	go func() { // ends after a line, or with the process
		line, err := bufio.NewReader(a.In).ReadString('\n')
		s := strings.ToLower(strings.TrimSpace(line))
		said <- err == nil && (s == "" && usual || s == "y" || s == "yes")
	}()
	select {
	case yes := <-said:
		return yes
	case <-ctx.Done():
		a.Notef("\n")
		return false
	}
}

// Ask asks at a terminal before money is spent, unless yes. It returns an error where the answer is no.
func (a *App) Ask(ctx context.Context, question string, yes bool) error {
	if _, asks := Terminal(a.Err); asks && !yes && !a.JSON && !a.Confirmed(ctx, question, true) {
		return errors.New("not run")
	}
	return nil
}
