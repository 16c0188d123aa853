package slurm

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/order"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// Programs run as the server's user. For anything that one writes into the engine's folder or a job's comment, the next
// server starts, waits for no pipe, removes nothing outside, and makes no list of two billion machines.
func TestRecords_CannotStopAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requests := filepath.Join(dir, "requests")
	write := func(name string, text []byte) {
		must.Do(t, os.MkdirAll(filepath.Join(requests, name), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(requests, name, "record.json"), text, 0o600))
	}
	told := func(r *record.Record) []byte { b, _ := json.Marshal(r); return b }
	over := time.Now().Add(-2 * 14 * 24 * time.Hour)
	victim := filepath.Join(dir, "victim")
	must.Do(t, os.Mkdir(victim, 0o700))
	write(record.NameOf("good"), told(&record.Record{Order: order.Order{Key: "good", Nodes: 2}, Name: record.NameOf("good")}))
	write(record.NameOf("many"), told(&record.Record{Order: order.Order{Key: "many", Nodes: 2_000_000_000}, Name: record.NameOf("many"),
		Start: over}))
	write(record.NameOf("few"), told(&record.Record{Order: order.Order{Key: "few", Nodes: -1}, Name: record.NameOf("few")}))
	write("garbage", []byte(strings.Repeat("[", 1<<20)))
	write("outside", told(&record.Record{Order: order.Order{Key: "outside", Nodes: 1}, Name: "../victim", Closed: true,
		End: over}))
	for _, pipe := range []string{"pipe/record.json", record.NameOf("good") + "/end.0", record.NameOf("good") + "/failed"} {
		_ = os.MkdirAll(filepath.Dir(filepath.Join(requests, pipe)), 0o700)
		must.Do(t, syscall.Mkfifo(filepath.Join(requests, pipe), 0o600))
	}
	ahead := filepath.Join(requests, record.NameOf("good"), "end.1")
	must.Do(t, os.WriteFile(ahead, []byte("99999999999999\n"), 0o600))
	d, err := newDriver("hpc", setting.With{}, dir, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	if len(d.records) != 1 || d.records["good"] == nil {
		t.Errorf("%d records are known, want that of good alone", len(d.records))
	}
	if _, err := os.Stat(victim); err != nil {
		t.Errorf("a folder outside is removed: %v", err)
	}
	r := d.records["good"]
	r.Start = over
	d.ends(r, "COMPLETED", time.Now())
	if err := d.store.Keep(r); err != nil {
		t.Errorf("an end in the year 3170843 keeps the record from being written: %v", err)
	}
	for _, nodes := range []string{"2000000000", "-1", "0", "1e9", "99999999999999999999"} {
		if _, ok := record.Of(&scheduler.Job{Comment: "scrimp:key=k&offer=hpc/x&nodes=" + nodes}); ok {
			t.Errorf("a comment of %s machines is believed", nodes)
		}
	}
}

// Texts that a key or tag may contain, with attacks on Slurm's comments, a shell, a query, a terminal and option
// parsing.
var hostile = []string{
	"a\n#SBATCH --partition=closed\nb", `'; touch owned; '`, "$(touch owned)`touch owned`", "a|b|c|d", "&nodes=7&key=x",
	"--wrap=true", "\x1b]0;owned\a", "ünïcödé 名前 \u202e", strings.Repeat("n", 100), "%j%A%x", "a b\tc", "\xff\xfe",
}

// Keys and tags with arbitrary texts pass through a real cluster: the machine belongs to its request, its tags are
// unchanged, even for a server that has lost the record, none of the texts is executed, and the machine can be
// terminated.
func TestHostileTexts_PassThroughSlurm(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	c := newCluster(t, "GRACE=2")
	for n, text := range hostile {
		d := c.driver(t)
		a := &again{Driver: d}
		tags := map[string]string{"scrimp-job": text, text: text}
		list, err := a.Launch(t.Context(), engine.Request{Key: text, Nodes: 1, Tags: tags,
			Offer: c.offer("ondemand/a100x4-8c-3g/on-demand")})
		if err != nil || len(list) != 1 || list[0].Key != text {
			t.Fatalf("%d, %q: %+v, %v", n, text, list, err)
		}
		must.Do(t, os.RemoveAll(filepath.Join(d.store.Folder(record.NameOf(a.key(text))), "record.json")))
		lost := c.driver(t)
		all, err := (&again{Driver: lost}).List(t.Context())
		at := slices.IndexFunc(all, func(i engine.Instance) bool { return i.ID == list[0].ID })
		if err != nil || at < 0 || all[at].Key != text || all[at].Tags[text] != text || all[at].Tags["scrimp-job"] != text {
			t.Errorf("%d, %q: a server without the record knows %.400v, %v", n, text, all, err)
		}
		if err := lost.Terminate(t.Context(), list[0].ID); err != nil {
			t.Errorf("%d, %q: %v", n, text, err)
		}
		eventually.True(t, "its nodes are free", func() bool { return c.do("squeue", "-h", "-t", "R,CG,PD", "-o", "%i") == "" })
	}
	var ran []string
	_ = filepath.WalkDir(c.dir, func(path string, _ os.DirEntry, _ error) error {
		if filepath.Base(path) == "owned" {
			ran = append(ran, path)
		}
		return nil
	})
	if len(ran) > 0 {
		t.Errorf("a text was run: %v", ran)
	}
}

// Another job of the server's user whose comment claims a request of two billion machines is not listed as a machine,
// and does not prevent a list of the others.
func TestForgedComment_IsNoMachine(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	c := newCluster(t, "GRACE=2")
	for _, comment := range []string{"key=k&nodes=2000000000", "key=k&rate=-9223372036854775808", "key=%00%ff&nodes=1",
		"key=k%0a&nodes=9&tag.scrimp-job=../../x"} {
		c.do("sbatch", "--parsable", "--partition=ondemand", "--output=/dev/null", "--comment="+"scrimp:"+comment+
			"&offer="+c.name+"/ondemand/a100x4-8c-3g/on-demand", "--wrap=sleep 1000")
	}
	eventually.True(t, "one runs", func() bool { return c.do("squeue", "-h", "-t", "R", "-o", "%i") != "" })
	d := c.driver(t)
	list, err := d.List(t.Context())
	if err != nil || len(list) > 16 {
		t.Fatalf("%d machines, %v", len(list), err)
	}
	for _, i := range list {
		if i.Rate < 0 {
			t.Errorf("a machine is paid for: %+v", i)
		}
	}
}
