package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/money"
)

// Payable is what we owe a provider and have no bill for yet.
func Payable(provider string) Account { return Account("payable/" + provider) }

// Invoice is what a provider has billed.
func Invoice(provider string) Account { return Account("invoice/" + provider) }

// Cost is what money was spent for.
func Cost(c Category, u Use) Account { return Account("cost/" + string(c) + "/" + string(u)) }

// IsCost reports whether the account holds cost, and of what.
func (a Account) IsCost() (c Category, u Use, ok bool) {
	rest, ok := strings.CutPrefix(string(a), "cost/")
	if !ok {
		return "", "", false
	}
	category, use, ok := strings.Cut(rest, "/")
	return Category(category), Use(use), ok
}

// Move returns the posting of a signed amount: a negative one goes the other
// way. It returns false for nothing, which is not posted.
func Move(amount money.Amount, from, to Account) (Posting, bool) {
	switch amount.Sign() {
	case 0:
		return Posting{}, false
	case -1:
		return Posting{Amount: amount.Neg(), From: to, To: from}, true
	}
	return Posting{Amount: amount, From: from, To: to}, true
}

// AppendBinary appends the posting in a fixed binary form: every field but Hash,
// texts with their length before them, tags sorted by name.
func (p Posting) AppendBinary(b []byte) []byte {
	b = append(b, "posting/1\n"...)
	b = binary.BigEndian.AppendUint64(b, p.Event)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Line))
	b = appendTime(b, p.At)
	b = p.Amount.AppendBinary(b)
	o := p.Owner
	for _, s := range []string{
		string(p.Currency), string(p.From), string(p.To), string(p.Category), string(p.Phase), string(p.Use), p.Rule,
		o.Tenant, o.Team, o.Project, o.Environment, o.ModelVersion, o.Job, o.Attempt, o.Task, o.Instance,
	} {
		b = appendText(b, s)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.Tags)))
	for _, k := range slices.Sorted(maps.Keys(o.Tags)) {
		b = appendText(appendText(b, k), o.Tags[k])
	}
	return append(b, p.Prev[:]...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// appendTime keeps the zero time apart from every other.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint64(append(b, 1), uint64(t.UnixNano()))
}

// Seal chains postings to head, the hash of the tenant's posting before them,
// and returns the new head.
func Seal(postings []Posting, head Hash) ([]Posting, Hash) {
	for i := range postings {
		postings[i].Prev = head
		head = sha256.Sum256(postings[i].AppendBinary(nil))
		postings[i].Hash = head
	}
	return postings, head
}

// Verify checks that each tenant's chain is whole and each posting well-formed.
// The error names the first posting that is not.
func Verify(postings iter.Seq2[Posting, error]) error {
	type last struct {
		head  Hash
		event uint64
		line  int
		any   bool
	}
	tenants := map[string]*last{}
	for p, err := range postings {
		if err != nil {
			return err
		}
		bad := func(why string) error {
			return fmt.Errorf("posting %d of event %d: %s", p.Line, p.Event, why)
		}
		t := tenants[p.Owner.Tenant]
		if t == nil {
			t = &last{}
			tenants[p.Owner.Tenant] = t
		}
		switch {
		case p.Amount.Sign() <= 0:
			return bad("its amount is not positive")
		case p.From == p.To || p.From == "" || p.To == "":
			return bad("it does not move from one account to another")
		case p.Currency == "":
			return bad("it has no currency")
		case t.any && (p.Event < t.event || p.Event == t.event && p.Line <= t.line):
			return bad("it stands after a later one")
		case p.Prev != t.head:
			return bad("it does not follow the posting before it: one was changed, lost or added")
		case Hash(sha256.Sum256(p.AppendBinary(nil))) != p.Hash:
			return bad("it was changed after it was sealed")
		}
		*t = last{p.Hash, p.Event, p.Line, true}
	}
	return nil
}

// Key is one cell of a summary: whose, for what, and what became of it.
type Key struct {
	Currency money.Currency
	Owner    string // at the level that was asked for
	Category Category
	Use      Use
}

// Level picks whose cost is summed.
type Level func(Owner) string

// Levels of a summary.
var (
	ByTenant   Level = func(o Owner) string { return o.Tenant }
	ByTeam     Level = func(o Owner) string { return o.Team }
	ByProject  Level = func(o Owner) string { return o.Project }
	ByJob      Level = func(o Owner) string { return o.Job }
	ByAttempt  Level = func(o Owner) string { return o.Attempt }
	ByInstance Level = func(o Owner) string { return o.Instance }
)

// Totals sums cost at a level. The sums of the parts equal the whole at every level.
func Totals(postings iter.Seq2[Posting, error], level Level) (map[Key]money.Amount, error) {
	sums := map[Key]money.Amount{}
	for p, err := range postings {
		if err != nil {
			return nil, err
		}
		if c, u, ok := p.To.IsCost(); ok {
			k := Key{p.Currency, level(p.Owner), c, u}
			sums[k] = sums[k].Add(p.Amount)
		}
		if c, u, ok := p.From.IsCost(); ok {
			k := Key{p.Currency, level(p.Owner), c, u}
			sums[k] = sums[k].Sub(p.Amount)
		}
	}
	return sums, nil
}

// Balances sums every account by currency; over all accounts each currency's sum is zero.
func Balances(postings iter.Seq2[Posting, error]) (map[money.Currency]map[Account]money.Amount, error) {
	sums := map[money.Currency]map[Account]money.Amount{}
	for p, err := range postings {
		if err != nil {
			return nil, err
		}
		accounts := sums[p.Currency]
		if accounts == nil {
			accounts = map[Account]money.Amount{}
			sums[p.Currency] = accounts
		}
		accounts[p.From] = accounts[p.From].Sub(p.Amount)
		accounts[p.To] = accounts[p.To].Add(p.Amount)
	}
	return sums, nil
}
