package show_test

import (
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/test/golden"
)

// A line for each receiver says what happened to the report, and when the server tries next.
func TestNotices_SayWhatHappened(t *testing.T) {
	next := now.Add(80 * time.Second)
	notice := func(to, state string, tries int, answer string) api.Notice {
		return api.Notice{Job: "train", Event: "over_budget", By: "email", To: to, State: state, Tries: tries, Error: answer,
			At: now.Add(-time.Minute)}
	}
	retried := notice("bob@example.org", api.Retrying, 3, "recipient: 450 greylisted\x1b[2J")
	retried.Next = &next
	hook := notice("hooks.example.org", api.Delivered, 1, "")
	hook.By = "webhook"
	j := api.Job{ID: "train", Notices: []api.Notice{notice("ann@example.org", api.Delivered, 1, ""), hook, retried,
		notice("eve@example.org", api.Waiting, 0, ""), notice("tom@example.org", api.Waiting, 2, "451 later"),
		notice("nobody@example.org", api.Refused, 1, "the mail server refuses the recipient: 550 no such user")}}
	golden.Check(t, "notices.80.txt", show.Notices(j, show.Place{Width: 80, Now: now}))
	golden.Check(t, "notices.piped.txt", show.Notices(j, show.Place{}))
	old := api.Job{Undelivered: []api.Undelivered{{Event: "done", To: "a@b", Error: "550 no"}}}
	if text := show.Notices(old, show.Place{}); text != "  not notified   a@b of done: 550 no\n" {
		t.Errorf("of an older server: %q", text)
	}
}
