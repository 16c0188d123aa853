package ssh

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/market"
)

// A machine that joined is anyone with its token. Its answers decide only what runs on it. They do
// not affect other machines or prices, and cannot control a terminal.
const (
	maxText      = 300   // bytes of a text
	maxInstances = 10000 // instances in a list
	maxTags      = 64    // tags of an instance
	maxParts     = 1024  // accelerators, and a 64th of the processors
)

var instanceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// plainText returns s in printable characters and bounded length.
func plainText(s string) string {
	s = s[:min(len(s), maxText)]
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s), "")
}

// tidy makes the answer of a machine that joined safe to print and to calculate with.
func tidy(a *hostd.Answer) {
	a.Problem = plainText(a.Problem)
	f := a.Facts
	if f == nil {
		return
	}
	for _, s := range []*string{&f.OS, &f.Arch, &f.Accelerator, &f.Driver, &f.NoDriver, &f.Python, &f.Apart, &f.Server,
		&f.Dir, &f.By} {
		*s = plainText(*s)
	}
	f.CPUs, f.Accelerators = min(max(0, f.CPUs), 64*maxParts), min(max(0, f.Accelerators), maxParts)
	f.Memory, f.GPUMemory, f.Free = max(0, f.Memory), max(0, f.GPUMemory), max(0, f.Free)
}

// believed validates a machine's list of instances and adds what the server knows of each. It
// trusts a machine reached by ssh, because the server copied the program that answers. The caller
// holds mu.
func (d *Driver) believed(l *link, list []engine.Instance) []engine.Instance {
	if _, joins := l.way.(*joining); !joins {
		return list
	}
	var held []engine.Instance
	for _, i := range list[:min(len(list), maxInstances)] {
		if !instanceID.MatchString(i.ID) || i.State != engine.Running && i.State != engine.Ended {
			continue
		}
		if !d.made(l, &i) { // another server's: only its existence matters
			held = append(held, engine.Instance{ID: i.ID, State: i.State})
			continue
		}
		if d.known(l, &i) {
			held = append(held, i)
		}
	}
	return held
}

// known sets the fields of an instance that the server knows, and reports whether the machine can
// have that instance. The caller holds mu.
func (d *Driver) known(l *link, i *engine.Instance) bool {
	key, _, _ := strings.Cut(i.Key, rankMark)
	now := time.Now().UTC()
	i.Rate, i.Notice, i.Interrupts, i.Bill = *l.host.Rate, 0, time.Time{}, nil
	if k := d.journal.Keys[key]; k != nil {
		rank := slices.Index(k.Hosts, l.host.Name)
		switch {
		case rank >= 0 && k.keyOf(key, rank) == i.Key:
			i.Offer, i.Launched, i.Rate = k.Offer, k.At, cmp.Or(k.Rate, i.Rate)
		case i.State == engine.Ended:
			return false
		default: // the key now belongs to other machines or another launch: only the instance's existence matters
			i.Key = ""
		}
	}
	if i.Launched.After(now) {
		i.Launched = now
	}
	switch i.State {
	case engine.Running:
		i.Ended, i.Cause = time.Time{}, ""
	case engine.Ended:
		if i.Ended.Before(i.Launched) {
			i.Ended = i.Launched
		}
		if i.Ended.After(now) {
			i.Ended = now
		}
		if !slices.Contains([]engine.Cause{engine.Terminated, engine.Interrupted, engine.Stopped}, i.Cause) {
			i.Cause = engine.Stopped
		}
	}
	i.Offer, i.Key = market.OfferID(plainText(string(i.Offer))), plainText(i.Key)
	if len(i.Tags) > maxTags {
		i.Tags = nil
	}
	for k, v := range i.Tags {
		if plainText(k) != k || plainText(v) != v {
			delete(i.Tags, k)
		}
	}
	return true
}
