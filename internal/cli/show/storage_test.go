package show_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/holdings"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
	"scrimp/internal/work/storage"
)

// A tier rule that can do nothing is named, small sums keep their digits, and rules that the user has not given have no numbers.
func TestStorage_SaysWhatARuleCannotDo(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	rules, err := storage.ParseRules("rules.yaml", []byte("rules:\n  - {kind: logs, older_than: 90d, action: delete}\n"+
		"  - {kind: datasets, older_than: 30d, action: tier, class: STANDRD_IA}\n"))
	must.Do(t, err)
	prices, err := storage.ParsePrices("prices.yaml", []byte("prices:\n  - {store: local, month: 0.1, source: ours}\n  - {store: aws, month: 0.1, source: list}\n"), nil)
	must.Do(t, err)
	for _, c := range []struct{ store, says string }{{storage.Local, "Rule 2 moves nothing in a folder"}, {"aws", "no price of the class STANDRD_IA is known"}} {
		places := []storage.Place{{Name: "/d", Store: c.store}}
		p := storage.NewPlanner(now, places, rules, prices)
		for i, name := range []string{"a.log", "b.csv", "c", "d"} {
			used := now.Add(-100 * 24 * time.Hour)
			p.Add(storage.File{Path: name, Bytes: 1000 + int64(i), Used: used, Changed: used})
		}
		same := storage.Duplicates{Files: []storage.File{{Path: "c", Bytes: 1}, {Path: "d", Bytes: 1}}}
		v := holdings.Of(places, rules, prices, p.Finish(), []storage.Duplicates{same, same})
		text := v.Text(show.Place{Now: now})
		for _, want := range []string{c.says, "2 files match no rule", "$0.0000001", "2 groups of files with the same contents", "RULE"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		if v.Standard = true; strings.Contains(v.Text(show.Place{Now: now}), "RULE") {
			t.Errorf("rules that nobody gave have numbers:\n%s", text)
		}
	}
}

// What a scan found fits the terminal, and names of files cannot steer it.
func TestStorage_MatchesGolden(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	places := []storage.Place{{Name: "/data/runs", Store: storage.Local}, {Name: "s3://models?prefix=team", Store: "aws"}}
	prices, err := storage.ParsePrices("prices.yaml", []byte("prices:\n  - {store: aws, month: 0.023, source: list}\n"+
		"  - {store: aws, class: STANDARD_IA, month: 0.0125, retrieval: 0.01, moves: 0.01, least_days: 30, least_kib: 128, source: list}\n"+
		"  - {store: aws, class: GLACIER_IR, month: 0.004, retrieval: 0.03, moves: 0.02, least_days: 90, least_kib: 128, source: list}\n"), nil)
	must.Do(t, err)
	rules, err := storage.ParseRules("rules.yaml", []byte("rules:\n  - {kind: logs, older_than: 90d, action: delete}\n"+
		"  - {kind: datasets, older_than: 30d, action: tier, class: STANDARD_IA}\n  - {kind: models, older_than: 30d, action: tier, class: GLACIER_IR, reads: 50}\n"))
	must.Do(t, err)
	p := storage.NewPlanner(now, places, rules, prices)
	at := func(place int, name string, bytes int64, days int) storage.File {
		used := now.Add(-time.Duration(days) * 24 * time.Hour)
		f := storage.File{Place: place, Path: name, Bytes: bytes, Used: used, Changed: used}
		p.Add(f)
		return f
	}
	at(0, "a/run.log", 3<<20, 100)
	at(0, "a/checkpoint-5/w.safetensors", 5<<30, 100)
	at(1, "data/x.parquet", 700e9, 40)
	at(1, "models/x.onnx", 90e9, 40)
	one, two := at(1, "data/y\x1b[31m.parquet", 5e9, 3), at(1, "data/z.parquet", 5e9, 3)
	v := holdings.Of(places, rules, prices, p.Finish(), []storage.Duplicates{{Files: []storage.File{one, two}}})
	v.Skipped, v.Hidden, v.Uncompared, v.Digest = []holdings.Skipped{{Why: "unreadable", Count: 3, Names: []string{"/data/runs/\x1b[2J"}}}, 2, 4, "0123456789abcdef"
	server := holdings.ServerOf(api.Storage{Kinds: []api.StorageUse{{Kind: "logs", Bytes: 5 << 20}, {Kind: "work", Bytes: 7 << 30}},
		Teams: []api.TeamStorage{{Team: "vision\x1b[31m", StorageUse: api.StorageUse{Kind: "work", Bytes: 6 << 30}}, {StorageUse: api.StorageUse{Kind: "logs", Bytes: 1}}}}, prices)
	for _, width := range []int{0, 60, 100} {
		name, place := fmt.Sprint(width), show.Place{Width: width, Now: now}
		if width == 0 {
			name, place = "piped", show.Place{}
		}
		golden.Check(t, "storage."+name+".txt", v.Text(place))
		golden.Check(t, "storage-server."+name+".txt", server.Text(place))
	}
	golden.JSON(t, "storage.json", v)
}
