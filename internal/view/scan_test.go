package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store"
)

// randomJSON writes a value with hostile strings.
func randomJSON(r *rand.Rand, deep int) string {
	space := strings.Repeat(" ", r.IntN(2))
	texts := []string{`""`, `"a"`, `"job"`, `"\\"`, `"\""`, `"}],{["`, `"\\\"job\":"`, `"j-1.2"`, `"\u006a"`, `"é"`}
	switch n := r.IntN(6); {
	case deep > 3 || n == 0:
		return []string{"1", "-1.5e3", "true", "null", "0"}[r.IntN(5)]
	case n < 3:
		return texts[r.IntN(len(texts))]
	case n == 3:
		var list []string
		for range r.IntN(4) {
			list = append(list, space+randomJSON(r, deep+1))
		}
		return "[" + strings.Join(list, ",") + space + "]"
	default:
		var list, keys []string
		for i := range r.IntN(4) {
			key := append(texts, `"attempt"`, `"body"`, `"launch"`)[r.IntN(len(texts)+3)]
			if r.IntN(2) == 0 {
				key = fmt.Sprintf("\"k%d\"", i)
			}
			if slices.Contains(keys, key) {
				continue // the log has no such object
			}
			keys = append(keys, key)
			list = append(list, key+space+":"+space+randomJSON(r, deep+1))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
}

// The scanner finds the members and elements that encoding/json finds.
func TestMembers_AreThoseOfTheDecoder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	objects, lists := 0, 0
	for range 20_000 {
		text := randomJSON(r, 0)
		var object map[string]json.RawMessage
		got := map[string]string{}
		members([]byte(text), func(key, value []byte) {
			var k string
			if err := json.Unmarshal(key, &k); err != nil {
				t.Fatalf("%s: key %s: %v", text, key, err)
			}
			got[k] = string(value)
		})
		want := map[string]string{}
		if json.Unmarshal([]byte(text), &object) == nil {
			for k, v := range object {
				want[k] = string(v)
			}
			objects++
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%s: members %q, want %q", text, got, want)
		}
		var list []json.RawMessage
		var all, wanted []string
		elements([]byte(text), func(v []byte) { all = append(all, string(v)) })
		if json.Unmarshal([]byte(text), &list) == nil {
			for _, v := range list {
				wanted = append(wanted, string(v))
			}
			lists++
		}
		if !slices.Equal(all, wanted) {
			t.Fatalf("%s: elements %q, want %q", text, all, wanted)
		}
	}
	if objects < 1000 || lists < 1000 {
		t.Errorf("%d objects and %d lists: the test shows little", objects, lists)
	}
}

// The scanner ends on any text.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{"a":1`, `{"a`, `["\`, `{]`, `{"a":[{}`, `{,:}`, `[1`, `{"job":"a"}`, ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		touched(&store.Record{Event: text, Facts: text})
	})
}

// decoded lists the jobs of a record with encoding/json alone.
func decoded(r *store.Record) map[string]bool {
	jobs := map[string]bool{}
	about := func(text json.RawMessage) {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(text, &members)
		for key, value := range members {
			var name string
			_ = json.Unmarshal(value, &name)
			switch key {
			case "job":
				jobs[name] = true
			case "attempt", "launch", "allocation":
				if dot := strings.LastIndex(name, "."); dot > 0 {
					jobs[name[:dot]] = true
				}
			}
		}
	}
	var e map[string]json.RawMessage
	_ = json.Unmarshal(r.Event, &e)
	about(e["body"])
	var facts []json.RawMessage
	_ = json.Unmarshal(r.Facts, &facts)
	for i := 1; i < len(facts); i += 2 {
		if name := string(facts[i-1]); name != `"job_archived"` && name != `"job_rehydrated"` {
			about(facts[i])
		}
	}
	for _, p := range r.Postings {
		jobs[p.Owner.Job] = true
	}
	delete(jobs, "")
	return jobs
}

// The jobs of a record are those that its body, its facts and its postings name.
func TestTouched_AreTheJobsThatTheRecordNames(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 1))
	found := 0
	for range 20_000 {
		rec := &store.Record{Event: json.RawMessage(`{"at":"x","body":` + randomJSON(r, 0) + `,"actor":"job"}`)}
		var facts []string
		for range r.IntN(4) {
			facts = append(facts, []string{`"a"`, `"job_archived"`, `"decided"`}[r.IntN(3)], randomJSON(r, 0))
		}
		rec.Facts = json.RawMessage("[" + strings.Join(facts, ",") + "]")
		for i := range r.IntN(3) {
			rec.Postings = append(rec.Postings, ledger.Posting{Owner: ledger.Owner{Job: []string{"", "p"}[i]}})
		}
		got := touched(rec)
		want := decoded(rec)
		if len(got) != len(want) || slices.ContainsFunc(got, func(j string) bool { return !want[j] }) {
			t.Fatalf("%s %s: %q, want %v", rec.Event, rec.Facts, got, want)
		}
		found += len(got)
	}
	if found < 1000 {
		t.Errorf("%d jobs: the test shows little", found)
	}
}
