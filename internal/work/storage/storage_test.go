package storage_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/work/storage"
	"scrimp/internal/work/storage/lifecycle"
)

const day = 24 * time.Hour

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestKindOf_GoesByNameThenFolder(t *testing.T) {
	for file, want := range map[string]storage.Kind{
		"run/checkpoint-500/model.safetensors": storage.Checkpoints, "run/epoch=3.ckpt": storage.Checkpoints,
		"run/checkpoints/events.out.tfevents.1": storage.TensorBoard, "run/global_step10/mp_rank_00_model_states.pt": storage.Checkpoints,
		"run/checkpoint-1/trainer.log": storage.Logs, "weights/a.safetensors": storage.Models, "MODEL.ONNX": storage.Models,
		"data/train.parquet": storage.Datasets, "data/x.bin": storage.Datasets, "lm/pytorch_model.bin": storage.Models, "lm/pytorch_model-00001-of-00002.bin": storage.Models,
		"checkpoint-5/pytorch_model.bin": storage.Checkpoints, "a/slurm-12.out": storage.Logs,
		"prof/a.pt.trace.json.gz": storage.Profiles, "img/base.sif": storage.Images, "old/code.tar.gz": storage.Archives,
		"outputs/report": storage.Outputs, "logs/outputs/report": storage.Outputs, "README": storage.Other, "steps.csv": storage.Datasets,
		"step-5/x.npz": storage.Checkpoints, "\xff\x00/\x1b.csv": storage.Datasets,
	} {
		if got := storage.KindOf(file); got != want {
			t.Errorf("%q is %s, want %s", file, got, want)
		}
	}
}

func local(files ...storage.File) storage.Result {
	p := storage.NewPlanner(now, []storage.Place{{Name: "/d", Store: storage.Local}}, storage.DefaultRules(), storage.Prices{})
	for _, f := range files {
		p.Add(f)
	}
	return p.Finish()
}

func file(name string, age time.Duration) storage.File {
	return storage.File{Path: name, Bytes: 10, Used: now.Add(-age), Changed: now.Add(-age), ID: name}
}

func deleted(r storage.Result) (names []string) {
	for _, v := range r.Victims {
		names = append(names, v.Path)
	}
	return names
}

// The newest checkpoint of each run stays whatever its age, as a whole; so does one that somebody chose.
func TestPlanner_KeepsNewestCheckpointOfEachRun(t *testing.T) {
	old := 100 * day
	named := file("f/checkpoint-1/w.bin", old+3*day)
	named.Held = storage.Needed // the rest of this checkpoint stays with it
	r := local(file("a/checkpoint-1/w.bin", old+3*day), file("a/checkpoint-2/w.bin", old), file("a/checkpoint-2/config.json", old+2*day),
		file("b/epoch10-lr3/checkpoint-1/w.bin", old+3*day), file("b/epoch10-lr3/checkpoint-2/w.bin", old),
		file("c/1.ckpt", old+3*day), file("c/best.ckpt", old+2*day), file("c/2-rank0.ckpt", old), file("c/2-rank1.ckpt", old-time.Minute),
		file("d/latest", 0), file("d/global_step1/w.pt", old+3*day), file("d/global_step2/w.pt", old), file("d/checkpoint.json", 0),
		named, file("f/checkpoint-1/config.json", old+3*day), file("f/checkpoint-2/w.bin", old),
		file("e/checkpoint-1/w.bin", old+3*day), file("e/checkpoint-1/touched.json", day), file("e/checkpoint-2/w.bin", 0))
	want := []string{"a/checkpoint-1/w.bin", "b/epoch10-lr3/checkpoint-1/w.bin", "c/1.ckpt", "d/global_step1/w.pt"}
	if got := deleted(r); !slices.Equal(got, want) {
		t.Errorf("deletes %q, want %q", got, want)
	}
	for _, v := range r.Victims {
		if v.Newer == "" || slices.Contains(want, v.Newer) {
			t.Errorf("%s: the newer checkpoint is %q", v.Path, v.Newer)
		}
	}
}

func TestPlanner_NeverDeletesHeldLinkedOrOddlyNamedFiles(t *testing.T) {
	held, own, linked := file("a.log", 900*day), file("b.log", 900*day), file("c.log", 900*day)
	held.Held, own.Held, own.HeldOnly, linked.Linked = storage.Needed, storage.OwnStore, true, true
	again := linked
	again.Path, again.Again = "d.log", true
	r := local(held, own, linked, again, file("\xff.log", 900*day), file("future.log", -day), file("go.log", 900*day))
	if got := deleted(r); !slices.Equal(got, []string{"go.log"}) {
		t.Errorf("deletes %q", got)
	}
	if u := r.Usage[0]; u.Files != 6 || u.Bytes != 60 || u.Month != nil || r.Unknown != 6 || r.Total() != nil || r.Saved() != nil {
		t.Errorf("%+v: a hard link counts once, and a cost without a price is unknown", u)
	}
}

const priceFile = `
prices:
  - {store: aws, month: 0.023, source: list}
  - {store: aws, class: STANDARD_IA, month: 0.0125, retrieval: 0.01, moves: 0.01, least_days: 30, least_kib: 128, source: list}
  - {store: aws, class: GLACIER_IR, month: 0.004, retrieval: 0.03, moves: 0.02, least_days: 90, least_kib: 128, source: list}
  - {store: aws, class: DEEP_ARCHIVE, month: 0.00099, retrieval: 0.02, moves: 0.05, least_days: 180, least_kib: 40, source: list}
  - {store: gcp, month: 0.02, source: list}
  - {store: gcp, class: COLDLINE, month: 0.004, retrieval: 0.02, moves: 0.1, least_days: 90, source: list}
  - {store: azure, month: 0.0184, source: list}
  - {store: azure, class: Cool, month: 0.01, retrieval: 0.01, moves: 0.1, least_days: 30, source: list}
`

func prices(t *testing.T) storage.Prices {
	t.Helper()
	p, err := storage.ParsePrices("prices.yaml", []byte(priceFile), nil)
	must.Do(t, err)
	return p
}

func rules(t *testing.T, text string) []storage.Rule {
	t.Helper()
	list, err := storage.ParseRules("rules.yaml", []byte("rules:\n"+text))
	must.Do(t, err)
	return list
}

// bucket plans rules for objects of an S3 bucket, 100 GB each, in a folder.
func bucket(t *testing.T, text, store string, files ...storage.File) (*storage.Planner, storage.Result) {
	t.Helper()
	name := map[string]string{"aws": "s3://models", "gcp": "gs://models", "azure": "azblob://models?account=a"}[store]
	p := storage.NewPlanner(now, []storage.Place{{Name: name, Store: store}}, rules(t, text), prices(t))
	for _, f := range files {
		p.Add(f)
	}
	done := p.Finish()
	return p, done
}

func large(name string, age time.Duration) storage.File {
	f := file(name, age)
	f.Bytes = 100e9
	return f
}

// The saving of a tier is worked by hand: storage for the stay, and at least the minimum duration, reads and the move.
func TestPlanner_TierSavingIsThatByHand(t *testing.T) {
	year := big.NewRat(365*24, 730)
	for _, c := range []struct {
		name, rules string
		want        func() *big.Rat // saved over the stay, in dollars
		months      *big.Rat
		why         storage.Reason
	}{
		{"a year, one read", "  - {kind: datasets, older_than: 30d, action: tier, class: STANDARD_IA}", func() *big.Rat {
			// 12 months × (2.30 − 1.25) − one read of 100 GB at 0.01 − one object at 0.01/1000
			return new(big.Rat).Sub(big.NewRat(1260, 100), big.NewRat(100_001, 100_000))
		}, year, ""},
		{"reads eat the saving", "  - {kind: datasets, older_than: 30d, action: tier, class: STANDARD_IA, reads: 14}", func() *big.Rat {
			return new(big.Rat).Sub(big.NewRat(1260-1400, 100), big.NewRat(1, 100_000)) // 12 × 1.05 − 14 × 1.00
		}, year, storage.CostsMore},
		{"reads cost more than the tier saves", "  - {kind: datasets, older_than: 30d, action: tier, class: GLACIER_IR, reads: 12}", func() *big.Rat {
			return new(big.Rat).Sub(big.NewRat(2280-3600, 100), big.NewRat(2, 100_000)) // 12 × 1.90 − 12 × 3.00
		}, year, storage.CostsMore},
		{"deleted before the minimum duration", "  - {kind: datasets, older_than: 60d, action: delete}\n" +
			"  - {kind: datasets, older_than: 30d, action: tier, class: DEEP_ARCHIVE, reads: 0}", func() *big.Rat {
			// 30 days at 2.30, against 180 days at 0.099
			a := new(big.Rat).Mul(big.NewRat(30*24, 730), big.NewRat(230, 100))
			b := new(big.Rat).Mul(big.NewRat(180*24, 730), big.NewRat(99, 1000))
			return a.Sub(a, b.Add(b, big.NewRat(5, 100_000)))
		}, big.NewRat(30*24, 730), ""},
	} {
		_, r := bucket(t, c.rules, "aws", large("data/a.parquet", 40*day))
		if len(r.Moves) != 1 {
			t.Fatalf("%s: %+v, %+v", c.name, r.Moves, r.Stays)
		}
		want := c.want()
		if m := r.Moves[0]; m.Saved.Cmp(want.Quo(want, c.months)) != 0 || m.Why != c.why {
			t.Errorf("%s: saves %s (%s), want %s (%s)", c.name, m.Saved.FloatString(6), m.Why, want.FloatString(6), c.why)
		}
		if (r.Saved() == nil) != (c.why != "") {
			t.Errorf("%s: only what is proposed counts as saved, got %v", c.name, r.Saved())
		}
	}
}

func stays(r storage.Result) string {
	var list []string
	for _, s := range r.Stays {
		list = append(list, fmt.Sprintf("%s %d", s.Reason, s.Files))
	}
	return strings.Join(list, ", ")
}

func TestPlanner_TierKeepsWhatItShould(t *testing.T) {
	small, there, needed, own := file("data/s.csv", 40*day), large("data/ia.csv", 40*day), large("data/n.csv", 40*day), large("data/o.csv", 40*day)
	there.Class, needed.Held, own.Held, own.HeldOnly = "STANDARD_IA", storage.Needed, storage.OwnStore, true
	_, r := bucket(t, "  - {kind: all, older_than: 30d, action: tier, class: standard_ia}", "aws", small, there, needed, own, large("data/x.csv", 40*day))
	if got := stays(r); got != "needed 1, too_small 1, already_there 1" || r.Moves[0].Files != 2 || r.Moves[0].Least != 128<<10 {
		t.Errorf("%s; %+v", got, r.Moves)
	}
	_, r = bucket(t, "  - {kind: all, older_than: 30d, action: tier, class: DEEP_ARCHIVE}", "aws", own)
	if got := stays(r); got != "scrimp_store 1" {
		t.Errorf("a class that needs a restore takes files of a store: %s", got)
	}
	fresh := large("data/ia2.csv", 10*day)
	fresh.Class = "STANDARD_IA"
	_, r = bucket(t, "  - {kind: all, older_than: 5d, action: delete}\n", "aws", fresh)
	if got := stays(r); got != "minimum_duration 1" {
		t.Errorf("a deletion that saves nothing is proposed: %s", got)
	}
	_, r = bucket(t, "  - {kind: all, older_than: 30d, action: tier, class: ARCHIVE}", "gcp", large("a.csv", 40*day))
	if got := stays(r); got != "price_unknown 1" || len(r.Moves) > 0 {
		t.Errorf("%s", got)
	}
	if r := local(large("a.csv", 40*day)); stays(r) != "no_rule 1" {
		t.Errorf("%s", stays(r))
	}
}

// For many files the planner's sums are those of a plain loop, and each file is in exactly one place of the result.
func TestPlanner_SumsAreThoseOfAPlainLoop(t *testing.T) {
	list := rules(t, "  - {kind: logs, under: keep, action: keep}\n  - {kind: logs, older_than: 30d, action: delete}\n"+
		"  - {kind: datasets, older_than: 60d, action: tier, class: STANDARD_IA, reads: 0.5}\n")
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		places := []storage.Place{{Name: "/d", Store: storage.Local}, {Name: "s3://b", Store: "aws"}}
		p := storage.NewPlanner(now, places, list, prices(t))
		bytes, gone, files := map[storage.Kind]int64{}, int64(0), int64(0)
		for i := range 300 {
			f := storage.File{Place: r.IntN(2), Bytes: r.Int64N(1e12), Used: now.Add(-time.Duration(r.IntN(90)) * day)}
			f.Path = fmt.Sprintf("%s/%d%s", []string{"keep", "x"}[r.IntN(2)], i, []string{".log", ".csv", ".bin"}[r.IntN(3)])
			f.Changed = f.Used
			p.Add(f)
			bytes[storage.KindOf(f.Path)] += f.Bytes
			files++
			if strings.HasSuffix(f.Path, ".log") && strings.HasPrefix(f.Path, "x/") && now.Sub(f.Used) >= 30*day {
				gone += f.Bytes
			}
		}
		out := p.Finish()
		var dollars, seen int64
		for _, u := range out.Usage {
			bytes[u.Kind] -= u.Bytes
			seen += u.Files
			if places[u.Place].Store == "aws" {
				dollars += u.Bytes * 23
			} else if u.Month != nil {
				t.Fatalf("seed %d: the price of a disk is known", seed)
			}
		}
		for kind, left := range bytes {
			if left != 0 {
				t.Errorf("seed %d: %s is off by %d bytes", seed, kind, left)
			}
		}
		if got := out.Total(); seen != files || got.Cmp(big.NewRat(dollars, 1e12)) != 0 {
			t.Errorf("seed %d: %d files cost %v, want %d and %d/1e12", seed, seen, got, files, dollars)
		}
		var freed, moved, left int64
		for _, v := range out.Victims {
			freed += v.Bytes
		}
		for _, m := range out.Moves {
			moved += m.Files
		}
		for _, s := range out.Stays {
			left += s.Files
		}
		if freed != gone || moved+left != files {
			t.Errorf("seed %d: deletes %d bytes, want %d; %d + %d files of %d", seed, freed, gone, moved, left, files)
		}
	}
}

func configuration(p *storage.Planner, format string, moves []storage.Move) ([]byte, error) {
	list, err := p.Lifecycle(0, moves)
	if err != nil {
		return nil, err
	}
	return lifecycle.Write(format, "models", list)
}

// A lifecycle configuration covers only folders in which its rule applies to every object, and only rules that pay.
func TestLifecycle_CoversOnlyFoldersOfTheRule(t *testing.T) {
	needed := large("mixed/needed.csv", 40*day)
	needed.Held = storage.Needed
	files := []storage.File{large("data/a/1.parquet", 40*day), large("data/b/2.parquet", 40*day), large("mixed/3.parquet", 40*day),
		needed, large("runs/x/4.parquet", 40*day), large("runs/x/5.log", 40*day), large("keep/6.parquet", 90*day)}
	for _, c := range []struct{ store, format, class, want string }{
		{"aws", "s3", "STANDARD_IA", `{"Rules":[{"Filter":{"And":{"ObjectSizeGreaterThan":131071,"Prefix":"data/"}},"ID":"scrimp-2-1","Status":"Enabled",` +
			`"Transitions":[{"Days":30,"StorageClass":"STANDARD_IA"}]}]}`},
		{"gcp", "gcs", "coldline", `{"rule":[{"action":{"storageClass":"COLDLINE","type":"SetStorageClass"},"condition":{"age":30,"matchesPrefix":["data/"]}}]}`},
		{"azure", "azure", "cool", `{"rules":[{"definition":{"actions":{"baseBlob":{"tierToCool":{"daysAfterModificationGreaterThan":30}}},` +
			`"filters":{"blobTypes":["blockBlob"],"prefixMatch":["models/data/"]}},"enabled":true,"name":"scrimp2x1","type":"Lifecycle"}]}`},
	} {
		text := "  - {kind: all, under: keep/, action: keep}\n  - {kind: datasets, older_than: 30d, action: tier, class: " + c.class + "}"
		p, r := bucket(t, text, c.store, files...)
		got, err := configuration(p, c.format, r.Moves)
		must.Do(t, err)
		var v any
		must.Do(t, json.Unmarshal(got, &v))
		if plain, _ := json.Marshal(v); string(plain) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.format, plain, c.want)
		}
	}
	p, r := bucket(t, "  - {kind: datasets, older_than: 30d, action: tier, class: STANDARD_IA}", "aws", large("a&b/1.csv", 40*day))
	text, err := configuration(p, "s3-xml", r.Moves)
	var got struct {
		Rules []struct {
			Prefix string `xml:"Filter>And>Prefix"`
			Days   int    `xml:"Transition>Days"`
			Class  string `xml:"Transition>StorageClass"`
		} `xml:"Rule"`
	}
	if err != nil || xml.Unmarshal(text, &got) != nil || len(got.Rules) != 1 || got.Rules[0].Prefix != "a&b/" || got.Rules[0].Days != 30 ||
		got.Rules[0].Class != "STANDARD_IA" {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := configuration(p, "s3", r.Moves); err != nil || strings.Contains(string(text), `"Prefix": ""`) {
		t.Errorf("a rule about one kind covers all later objects: %s, %v", text, err)
	}
	for _, c := range []struct{ rules, says string }{
		{"  - {kind: all, older_than: 10d, action: tier, class: STANDARD_IA}", "takes objects from 30 days on"},
		{"  - {kind: all, older_than: 30d, action: tier, class: STANDARD_IA, reads: 50}", storage.ErrNoTransition.Error()},
		{"  - {kind: all, older_than: 30d, action: delete}", storage.ErrNoTransition.Error()},
	} {
		p, r := bucket(t, c.rules, "aws", large("a/1.csv", 40*day))
		if _, err := configuration(p, "s3", r.Moves); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.rules, err)
		}
	}
}

func TestParse_NamesFileFieldAndFix(t *testing.T) {
	for text, says := range map[string]string{
		"rules: []": "`rules` has 0 rules", "rules: [{kind: x, action: keep}]": "`rules[0].kind` is \"x\": write one of all, checkpoints",
		"rules: [{kind: logs, action: burn}]":                                                "`rules[0].action` is \"burn\": write one of keep, tier, delete",
		"rules: [{kind: logs, action: delete}]":                                              "has no older_than: write a span such as 90d",
		"rules: [{kind: logs, action: delete, older_than: 1h}]":                              "write whole days from 1d to 3650d",
		"rules: [{kind: logs, action: delete, older_than: 9000d}]":                           "write whole days from 1d to 3650d",
		"rules: [{kind: logs, action: delete, older_than: 3d, class: X}]":                    "`rules[0].class` goes with action: tier",
		"rules: [{kind: logs, action: tier, older_than: 3d}]":                                "has no class: write the storage class",
		"rules: [{kind: logs, action: tier, older_than: 3d, class: 'a\"b'}]":                 "`rules[0].class` is",
		"rules: [{kind: logs, action: tier, older_than: 3d, class: X, reads: 10%}]":          "is not a number of reads a year",
		"rules: [{kind: logs, action: keep, under: ../x}]":                                   "`rules[0].under` is \"../x\"",
		"rules: [{kind: logs, action: keep, underr: x}]":                                     "`rules[0].underr` is not known here",
		"rules: [{action: keep}]":                                                            "has no kind: write kind:",
		"rules: [" + strings.Repeat("{kind: logs, action: keep},", 101) + "]":                "has 101 rules: write 1 to 100",
		"rules: [{kind: logs, action: tier, older_than: 3d, class: X, reads: 99999999}]":     "write 0 to 10000",
		"rules: [{kind: logs, action: delete, older_than: 106752d}]":                         "older_than",
		"rules: [{kind: logs, action: delete, older_than: 30d}, {kind: 3, action: [delete]}": "rules.yaml",
	} {
		if _, err := storage.ParseRules("dir/rules.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "rules.yaml") {
			t.Errorf("%.80s: %v, want %s", text, err, says)
		}
	}
	for text, says := range map[string]string{
		"prices: []": "has no price", "prices: [{store: ibm, month: 1, source: x}]": "`prices[0].store` is \"ibm\"",
		"prices: [{store: aws, source: x}]": "has no month", "prices: [{store: aws, month: 1}]": "`prices[0].source` is missing",
		"prices: [{store: aws, month: -1, source: x}]": "from 0 to 10^12", "prices: [{store: aws, month: 10%, source: x}]": "a percentage is no price",
		"prices: [{store: aws, month: 1, source: x}, {store: aws, class: standard, month: 2, source: x}]": "has a second price of aws standard",
		"prices: [{store: aws, month: 1, source: x, least_days: 99999}]":                                  "write a whole number from 0 to 3650",
		"prices: [{store: aws, month: 1, source: x, date: May}]":                                          "write a day such as",
		"currency: dollars\nprices: [{store: aws, month: 1, source: x}]":                                  "`currency` is \"dollars\"",
	} {
		if _, err := storage.ParsePrices("prices.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v, want %s", text, err, says)
		}
	}
}

// Built-in prices, in dollars, count for classes that the file does not name, and not in another currency.
func TestParsePrices_FileComesBeforeBuiltinPrices(t *testing.T) {
	builtin := []storage.Price{{Store: "aws", Class: "STANDARD", Month: big.NewRat(1, 1)}, {Store: "gcp", Class: "STANDARD", Month: big.NewRat(2, 1)}}
	p, err := storage.ParsePrices("p.yaml", []byte("prices: [{store: aws, month: 5, source: x}]"), builtin)
	a, _ := p.Of("aws", "")
	g, ok := p.Of("gcp", "standard")
	if err != nil || a.Month.Cmp(big.NewRat(5, 1)) != 0 || !ok || g.Month.Cmp(big.NewRat(2, 1)) != 0 {
		t.Errorf("%v, %v, %v", a, g, err)
	}
	p, err = storage.ParsePrices("p.yaml", []byte("currency: EUR\nprices: [{store: aws, month: 5, source: x}]"), builtin)
	if _, ok := p.Of("gcp", ""); ok || err != nil {
		t.Errorf("a price in dollars counts as one in euros: %v", err)
	}
}

// A plan that anybody has changed is refused, also one that leads out of its place.
func TestReadPlan_RefusesChangedPlan(t *testing.T) {
	r := local(file("a.log", 900*day), file("b.log", 800*day))
	plan := storage.PlanOf(now, []storage.Place{{Name: "/d", Store: storage.Local}}, storage.DefaultRules(), []string{"/k"}, r)
	text, err := json.MarshalIndent(plan, "", "  ")
	must.Do(t, err)
	again, err := storage.ReadPlan("plan.json", text)
	if err != nil || len(again.Delete) != 2 || again.Bytes != 20 || again.Digest != plan.Digest {
		t.Fatalf("%+v, %v", again, err)
	}
	for from, to := range map[string]string{"a.log": "c.log", `"bytes": 20`: `"bytes": 21`, `"version": 2`: `"version": 1`, `"/k"`: `"/l"`,
		`"keep"`: `"kept"`, `"place": 0`: `"place": 7`, "{": "["} {
		if _, err := storage.ReadPlan("plan.json", []byte(strings.Replace(string(text), from, to, 1))); err == nil || !strings.Contains(err.Error(), "plan.json: `") {
			t.Errorf("%s → %s: %v", from, to, err)
		}
	}
	for _, bad := range []string{"../x", "/etc/passwd", "a/../../x", ".", "a//b", ""} {
		v := r.Victims[0]
		v.Path = bad
		text, _ := json.Marshal(storage.PlanOf(now, plan.Places, storage.DefaultRules(), nil, storage.Result{Victims: []storage.Victim{v}}))
		if _, err := storage.ReadPlan("plan.json", text); err == nil {
			t.Errorf("%q: a plan leads out of its place", bad)
		}
	}
}

func FuzzReadPlan(f *testing.F) {
	f.Add([]byte(`{"version":2,"places":[],"keep":[],"delete":[],"folders":[],"bytes":0,"digest":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := storage.ReadPlan("plan.json", text)
		for _, d := range p.Delete {
			if err == nil && (d.Place >= len(p.Places) || strings.Contains("/"+d.Path+"/", "/../")) {
				t.Errorf("%+v", d)
			}
		}
	})
}

// Of files of one size, those with most bytes are compared first; second names and small files are not.
func TestCandidates_GroupsFilesOfOneSize(t *testing.T) {
	c := storage.Candidates{Least: 5}
	for i, bytes := range []int64{10, 4, 20, 10, 4, 20, 20, 30} {
		c.Add(storage.File{Path: fmt.Sprint(i), Bytes: bytes})
	}
	c.Add(storage.File{Path: "again", Bytes: 30, Again: true})
	var got []string
	for _, g := range c.SameSize() {
		for _, f := range g {
			got = append(got, f.Path)
		}
		got = append(got, "|")
	}
	if strings.Join(got, "") != "256|03|" {
		t.Errorf("%q", got)
	}
	d := storage.Duplicates{Files: []storage.File{{Bytes: 1e9}, {Bytes: 1e9}, {Place: 1, Bytes: 1e9}}}
	places := []storage.Place{{Store: "aws"}, {Store: "gcp"}}
	if m, ok := d.Month(places, prices(t)); !ok || m.Cmp(big.NewRat(43, 1000)) != 0 || d.Extra() != 2e9 {
		t.Errorf("%v, %v", m, ok)
	}
	if _, ok := d.Month([]storage.Place{{Store: "aws"}, {Store: storage.Local}}, prices(t)); ok {
		t.Error("a copy without a price costs nothing")
	}
}
