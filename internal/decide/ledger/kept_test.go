package ledger_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// booked draws random postings and their booking times, which advance by nothing, by seconds or by weeks. Some have
// tags, some have no job.
func booked(t *rapid.T) []ledger.Posting {
	list := random(t)
	at := start
	for i := range list {
		p := &list[i]
		at = at.Add(rapid.SampledFrom([]time.Duration{0, time.Nanosecond, time.Minute, time.Hour, 23 * time.Hour, 1000 * time.Hour}).Draw(t, "later"))
		p.At = at
		if n := rapid.IntRange(0, 3).Draw(t, "tags"); n > 0 {
			p.Owner.Tags = map[string]string{"ticket": fmt.Sprint(n), "odd\"=\n": "x"}
		}
		p.Owner.Project = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "project")
		category, _, _ := p.To.IsCost()
		if c, _, ok := p.From.IsCost(); ok {
			category = c
		}
		p.Category, p.Provider = category, rapid.SampledFrom([]string{"", "aws"}).Draw(t, "provider")
		p.Region, p.SKU = rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "region"), rapid.SampledFrom([]string{"", "m5"}).Draw(t, "sku")
		if rapid.IntRange(0, 9).Draw(t, "nobody's") == 0 {
			p.Owner.Job, p.Rule = "", "reserved"
		}
	}
	list, _ = ledger.Seal(list, ledger.Hash{})
	return list
}

// userOf returns the submitter of a job, as a server would know it.
func userOf(job string) string {
	if job == "" {
		return ""
	}
	return "user-" + job[:1]
}

type answer map[string]money.Amount

func (a answer) add(w ledger.Dimensions, by string, c money.Currency, u ledger.Use, part money.Amount) {
	name := map[string]string{"team": w.Team, "project": w.Project, "user": w.User, "tag": w.Tag("ticket"), "odd": w.Tag("odd\"=\n"), "rule": w.Rule,
		"provider": w.Provider, "region": w.Region, "sku": w.SKU, "category": string(w.Category)}[by]
	k := fmt.Sprintf("%q %s %s", name, c, u)
	if a[k] = a[k].Add(part); a[k].IsZero() {
		delete(a, k) // cost that moved away again leaves no entry
	}
}

// walked sums over all postings.
func walked(list []ledger.Posting, by string, since time.Time) answer {
	a := answer{}
	for _, p := range list {
		if p.At.Before(since) {
			continue
		}
		name := map[string]string{"team": p.Owner.Team, "project": p.Owner.Project, "user": userOf(p.Owner.Job), "tag": p.Owner.Tags["ticket"], "odd": p.Owner.Tags["odd\"=\n"],
			"provider": p.Provider, "region": p.Region, "sku": p.SKU, "category": string(p.Category)}[by]
		if by == "rule" && p.Owner.Job == "" {
			name = p.Rule
		}
		for account, sign := range map[ledger.Account]int{p.To: 1, p.From: -1} {
			_, use, ok := account.IsCost()
			if !ok && !strings.HasPrefix(string(account), "invoice/") {
				continue
			}
			if !ok {
				use, sign = ledger.Invoiced, -sign
			}
			k := fmt.Sprintf("%q %s %s", name, p.Currency, use)
			if sign > 0 {
				a[k] = a[k].Add(p.Amount)
			} else {
				a[k] = a[k].Sub(p.Amount)
			}
		}
	}
	for k, v := range a {
		if v.IsZero() {
			delete(a, k)
		}
	}
	return a
}

// summed uses the kept sums, and reads the postings of the hour that since cuts.
func summed(s *ledger.Sums, list []ledger.Posting, by string, since time.Time) answer {
	a := answer{}
	cut, isCut := s.Since(since, func(n int, c ledger.Column, part money.Amount) { a.add(s.Dimensions()[n], by, c.Currency, c.Use, part) })
	for _, p := range list {
		if isCut && p.Event >= cut.First && p.Event <= cut.Last && cut.Holds(p) {
			p.Parts(func(u ledger.Use, part money.Amount) {
				a.add(ledger.DimensionsOf(p, userOf(p.Owner.Job), ""), by, p.Currency, u, part)
			})
			if part, is := p.Invoiced(); is {
				a.add(ledger.DimensionsOf(p, userOf(p.Owner.Job), ""), by, p.Currency, ledger.Invoiced, part)
			}
		}
	}
	return a
}

func firstOf(list []ledger.Posting) time.Time {
	if len(list) == 0 {
		return start
	}
	return list[0].At
}

// For any grouping and any start, the kept sums equal a walk over all postings exactly. So do sums that were
// written piece by piece and read again, with the same bytes.
func TestSums_MatchAWalkOverAllPostings(t *testing.T) {
	cuts := 0
	rapid.Check(t, func(t *rapid.T) {
		list := booked(t)
		every := rapid.IntRange(1, 20).Draw(t, "postings in a piece")
		whole, fresh, again := ledger.NewSums(), ledger.NewSums(), ledger.NewSums()
		for i, p := range list {
			if o, want := ledger.DimensionsOf(p, "", "").Owner(), p.Owner; o.Team != want.Team || o.Project != want.Project || !maps.Equal(o.Tags, want.Tags) {
				t.Fatalf("the owner %+v is read as %+v", want, o)
			}
			whole.Add(p, userOf(p.Owner.Job), "")
			fresh.Add(p, userOf(p.Owner.Job), "")
			if (i+1)%every == 0 || i == len(list)-1 {
				text, err := json.Marshal(fresh)
				must.Do(t, err)
				piece, err := ledger.ReadPiece(text)
				must.Do(t, err)
				again.Merge(piece)
				if i%7 == 3 {
					again.Forget(p.At.Add(-48 * time.Hour))
				}
				fresh = ledger.NewSums()
			}
		}
		if a, b := whole.Len(), again.Len(); a != len(list) || b != a {
			t.Fatalf("%d postings, %d again, of %d", a, b, len(list))
		}
		if len(list) > 0 {
			if event, hash := again.Head(); event != list[len(list)-1].Event || hash != list[len(list)-1].Hash {
				t.Fatalf("the head is %d %x", event, hash)
			}
		}
		if rapid.Bool().Draw(t, "forgets") { // and continues
			again.Forget(firstOf(list).Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "days")) * 24 * time.Hour))
		}
		since := []time.Time{{}, start, start.Add(-time.Hour), start.Add(90 * time.Minute), start.AddDate(1, 0, 0)}
		for _, p := range list {
			since = append(since, p.At, p.At.Add(time.Nanosecond), p.At.Add(-time.Minute), p.At.Truncate(time.Hour), p.At.Truncate(24*time.Hour))
		}
		at := rapid.SampledFrom(since).Draw(t, "since")
		if !at.IsZero() && !at.Truncate(time.Hour).Equal(at) {
			cuts++
		}
		for _, by := range []string{"team", "project", "user", "tag", "odd", "rule", "provider", "region", "sku", "category"} {
			want := walked(list, by, at)
			for name, s := range map[string]*ledger.Sums{"kept": whole, "read again": again} {
				if got := summed(s, list, by, at); !maps.Equal(got, want) {
					t.Fatalf("by %s since %v, %s: %v, a walk says %v", by, at, name, got, want)
				}
			}
		}
		first, ok := whole.From(at)
		for _, p := range list {
			if !p.At.Before(at) && (!ok || p.Event < first) {
				t.Fatalf("from %v on: event %d, but %d is at %v", at, first, p.Event, p.At)
			}
		}
	})
	if cuts == 0 {
		t.Error("no hour was cut")
	}
}

func TestSums_RejectCorruptData(t *testing.T) {
	for _, text := range []string{"", "{", `{"hours":[{"hour":1,"cells":[{"w":0,"c":0,"a":"1"}]}]}`, `{"whose":[{}],"columns":[{}],"hours":[{"cells":[{"w":0,"c":-1,"a":"1"}]}]}`} {
		if _, err := ledger.ReadPiece([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
