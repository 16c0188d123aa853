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

	"scrimp/internal/lib/money"
)

// Payable returns the account of unbilled debt to a provider.
func Payable(provider string) Account { return Account("payable/" + provider) }

// Invoice returns the account of debt that a provider has billed.
func Invoice(provider string) Account { return Account("invoice/" + provider) }

// Cost is the account for a category and use of cost.
func Cost(c Category, u Use) Account {
	if c == Compute { // nearly all postings
		switch u {
		case Open:
			return "cost/compute/open"
		case Useful:
			return "cost/compute/useful"
		case Lost:
			return "cost/compute/lost"
		case StartUp:
			return "cost/compute/start-up"
		case Idle:
			return "cost/compute/idle"
		case Invoiced:
		}
	}
	return Account("cost/" + string(c) + "/" + string(u))
}

// Creditor returns the provider that the account is owed to or was billed by.
func (a Account) Creditor() (name string, ok bool) {
	for _, kind := range [...]string{"payable/", "invoice/"} {
		if name, ok = strings.CutPrefix(string(a), kind); ok {
			return name, true
		}
	}
	return "", false
}

// IsCost reports whether the account holds cost, and which.
func (a Account) IsCost() (c Category, u Use, ok bool) {
	rest, ok := strings.CutPrefix(string(a), "cost/")
	if !ok {
		return "", "", false
	}
	category, use, ok := strings.Cut(rest, "/")
	return Category(category), Use(use), ok
}

// Move returns the posting of a signed amount; a negative amount goes in the other direction. It returns false for
// zero, which is not posted.
func Move(amount money.Amount, from, to Account) (Posting, bool) {
	switch amount.Sign() {
	case 0:
		return Posting{}, false
	case -1:
		return Posting{Amount: amount.Neg(), From: to, To: from}, true
	}
	return Posting{Amount: amount, From: from, To: to}, true
}

// AppendBinary appends the posting in a fixed binary form: every field except Hash, length-prefixed strings, and
// tags sorted by name.
func (p *Posting) AppendBinary(b []byte) []byte {
	form := "posting/2\n"
	if p.Zone != "" { // older chains, without zones, keep their form
		form = "posting/3\n"
	}
	b = append(b, form...)
	b = binary.BigEndian.AppendUint64(b, p.Event)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Line))
	b = appendTime(appendTime(appendTime(b, p.At), p.Begin), p.End)
	b = p.Amount.AppendBinary(b)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Quantity.Whole))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Quantity.Nanos))
	b = appendPrice(appendPrice(b, p.Price), p.ListPrice)
	o := &p.Owner
	for _, s := range [...]string{
		string(p.Currency), string(p.From), string(p.To), string(p.Category), string(p.Phase), string(p.Use), p.Rule,
		p.Provider, p.Region, p.SKU, string(p.Unit),
		o.Tenant, o.Team, o.Project, o.Environment, o.ModelVersion, o.Job, o.Attempt, o.Task, o.Instance,
	} {
		b = appendText(b, s)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.Tags)))
	if len(o.Tags) > 0 {
		for _, k := range slices.Sorted(maps.Keys(o.Tags)) {
			b = appendText(appendText(b, k), o.Tags[k])
		}
	}
	if o.Group != "" || o.Part != "" || p.Zone != "" { // likewise
		b = appendText(appendText(b, o.Group), o.Part)
	}
	if p.Zone != "" {
		b = appendText(b, p.Zone)
	}
	return append(b, p.Prev[:]...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// appendTime encodes the zero time differently from all others.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint64(append(b, 1), uint64(t.UnixNano()))
}

// appendPrice encodes an unknown price differently from a price of zero.
func appendPrice(b []byte, p Price) []byte {
	known := byte(0)
	if p.Known {
		known = 1
	}
	return binary.BigEndian.AppendUint64(append(b, known), uint64(p.Rate))
}

// Seal chains postings to head, the hash of the tenant's previous posting, and returns the new head.
func Seal(postings []Posting, head Hash) ([]Posting, Hash) {
	var room [512]byte // large enough for most postings
	for i := range postings {
		p := &postings[i]
		p.Prev = head
		head = sha256.Sum256(p.AppendBinary(room[:0]))
		p.Hash = head
	}
	return postings, head
}

// Verify checks that each tenant's chain is intact and each posting well-formed. The error names the first bad
// posting. A chain whose last postings were cut off still passes; VerifyTo detects that.
func Verify(postings iter.Seq2[Posting, error]) error {
	_, err := Heads(postings)
	return err
}

// VerifyTo is Verify, and also checks that each tenant's chain ends at a head recorded elsewhere: in a snapshot, in
// a backup, by an auditor.
func VerifyTo(postings iter.Seq2[Posting, error], heads map[string]Hash) error {
	got, err := Heads(postings)
	if err != nil {
		return err
	}
	for _, tenant := range slices.Sorted(maps.Keys(heads)) {
		if got[tenant] != heads[tenant] {
			return fmt.Errorf("the ledger of %q ends at %.12x, not at %.12x: its last postings were cut off, or others "+
				"were added", tenant, got[tenant], heads[tenant])
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(got)) {
		if _, ok := heads[tenant]; !ok {
			return fmt.Errorf("the ledger of %q has postings that were not expected", tenant)
		}
	}
	return nil
}

// Heads checks postings like Verify and returns the hash of each tenant's last one.
func Heads(postings iter.Seq2[Posting, error]) (map[string]Hash, error) {
	type place struct {
		event uint64
		line  int
	}
	heads, last := map[string]Hash{}, map[string]place{}
	for p, err := range postings {
		if err != nil {
			return nil, err
		}
		tenant := p.Owner.Tenant
		before, seen := last[tenant]
		if why := p.wrong(heads[tenant], seen && (p.Event < before.event ||
			p.Event == before.event && p.Line <= before.line)); why != "" {
			return nil, fmt.Errorf("posting %d of event %d: %s", p.Line, p.Event, why)
		}
		heads[tenant], last[tenant] = p.Hash, place{p.Event, p.Line}
	}
	return heads, nil
}

// wrong describes the fault of a posting that should follow head; empty if there is none.
func (p Posting) wrong(head Hash, late bool) string {
	switch {
	case p.Amount.Sign() <= 0:
		return "its amount is not positive"
	case p.From == p.To || p.From == "" || p.To == "":
		return "it does not move from one account to another"
	case p.Currency == "":
		return "it has no currency"
	case !p.Quantity.Valid():
		return "its quantity is negative or no quantity"
	case p.End.Before(p.Begin):
		return "its period ends before it begins"
	case late:
		return "it stands after a later one"
	case p.Prev != head:
		return "it does not follow the posting before it: one was changed, lost or added"
	case Hash(sha256.Sum256(p.AppendBinary(nil))) != p.Hash:
		return "it was changed after it was sealed, or the one before it was changed, lost or added"
	}
	return ""
}

// Key is one cell of a summary: owner, category and use.
type Key struct {
	Currency money.Currency
	Owner    string // at the requested level
	Category Category
	Use      Use
}

// Level selects the owner whose cost is summed.
type Level func(Owner) string

// Levels of a summary.
var (
	ByTenant   Level = func(o Owner) string { return o.Tenant }
	ByTeam     Level = func(o Owner) string { return o.Team }
	ByProject  Level = func(o Owner) string { return o.Project }
	ByJob      Level = func(o Owner) string { return o.Job }
	ByAttempt  Level = func(o Owner) string { return o.Attempt }
	ByTask     Level = func(o Owner) string { return o.Task }
	ByInstance Level = func(o Owner) string { return o.Instance }
)

// ByTag sums by the value of a tag. Costs without the tag are under "".
func ByTag(name string) Level { return func(o Owner) string { return o.Labels()[name] } }

// Totals sums cost at a level. The parts add up to the whole at every level.
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

// Balances sums every account by currency. Over all accounts, the sum of each currency is zero.
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
