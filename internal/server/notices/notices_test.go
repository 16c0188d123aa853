package notices_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/server/notices"
	"scrimp/internal/test/must"
)

func mail(to, state string, tries int) client.Notice {
	return client.Notice{Job: "train", Event: "done", By: "email", To: to, State: state, Tries: tries,
		At: time.Unix(int64(tries), 0).UTC()}
}

// A server that starts knows the newest outcome of each receiver and event, also after a crash in the middle of a line.
func TestPast_ReplaysNewestOutcomeOfEachReceiver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &notices.Past{Dir: dir}
	next := time.Unix(99, 0).UTC()
	for _, n := range []client.Notice{mail("ann", client.Retrying, 1), mail("bob", client.Retrying, 1),
		mail("ann", client.Delivered, 2)} {
		if n.State == client.Retrying {
			n.Next = &next
		}
		must.Do(t, p.Add(notices.Entry{Key: "k", Notice: n}))
	}
	if open := p.Open(); len(open) != 1 || open[0].To != "bob" || !open[0].Next.Equal(next) {
		t.Errorf("open: %+v", open)
	}
	path := filepath.Join(dir, "notices", "train")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	must.Do(t, err)
	if _, err := f.WriteString(`{"key":"k","to":"bob","sta`); err != nil {
		t.Fatal(err)
	}
	must.Do(t, f.Close())
	after := &notices.Past{Dir: dir}
	must.Do(t, after.Add(notices.Entry{Key: "other", Notice: mail("bob", client.Refused, 1)}))
	for to, want := range map[string]client.Notice{"ann": mail("ann", client.Delivered, 2),
		"bob": mail("bob", client.Retrying, 1), "eve": {Job: "train", Event: "done", By: "email", To: "eve"}} {
		e, done, ok, err := after.Begin("k", client.Notice{Job: "train", Event: "done", By: "email", To: to})
		if err != nil || !ok || e.Notice.State != want.State || e.Notice.Tries != want.Tries {
			t.Fatalf("%s: %+v %v %v", to, e, ok, err)
		}
		if want.Tries > 0 && !e.First.Equal(time.Unix(1, 0)) {
			t.Errorf("%s: the first try was at %v", to, e.First)
		}
		if _, _, again, _ := after.Begin("k", client.Notice{Job: "train", Event: "done", By: "email", To: to}); again {
			t.Errorf("%s: two callers make one report", to)
		}
		done()
	}
	list, err := after.Of("train")
	if err != nil || len(list) != 3 || list[0].State != client.Delivered || list[2].State != client.Refused {
		t.Errorf("%+v, %v", list, err)
	}
	if open := after.Open(); len(open) != 1 || open[0].To != "bob" {
		t.Errorf("the next server does not list who waits: %+v", open)
	}
}

// A file does not grow without end, and no outcome is lost by that.
func TestPast_ShortensLongFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &notices.Past{Dir: dir}
	must.Do(t, p.Add(notices.Entry{Key: "first", Notice: mail("ann", client.Delivered, 1)}))
	n := mail("bob", client.Retrying, 1)
	n.Error = strings.Repeat("x", 8<<10)
	for range 100 {
		must.Do(t, p.Add(notices.Entry{Key: "k", Notice: n}))
	}
	info, err := os.Stat(filepath.Join(dir, "notices", "train"))
	if err != nil || info.Size() > 300<<10 {
		t.Errorf("%v, %v", info.Size(), err)
	}
	list, err := p.Of("train")
	if err != nil || !slices.ContainsFunc(list, func(n client.Notice) bool { return n.To == "ann" }) || len(list) != 2 {
		t.Errorf("%d notices, %v", len(list), err)
	}
}
