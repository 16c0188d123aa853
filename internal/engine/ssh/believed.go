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

// A machine that joined is whoever has its token. What it says decides what runs there, and nothing of other
// machines, of prices, or of what is printed on a terminal.
const (
	mostText      = 300   // bytes of a text
	mostInstances = 10000 // that it lists
	mostTags      = 64    // of one of them
	mostParts     = 1024  // accelerators or, times 64, processors
)

var instanceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// plainText is a text as it may be printed.
func plainText(s string) string {
	s = s[:min(len(s), mostText)]
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s), "")
}

// tidy makes an answer of a machine that joined what may be printed and counted with.
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
	f.CPUs, f.Accelerators = min(max(0, f.CPUs), 64*mostParts), min(max(0, f.Accelerators), mostParts)
	f.Memory, f.GPUMemory, f.Free = max(0, f.Memory), max(0, f.GPUMemory), max(0, f.Free)
}

// believed are the instances that a machine says it has or had, with what the server knows of each. One that
// came by ssh is asked through a program that the server copied there: it is taken at its word. The caller holds mu.
func (d *Driver) believed(l *link, list []engine.Instance) []engine.Instance {
	if _, joins := l.way.(*joining); !joins {
		return list
	}
	var held []engine.Instance
	for _, i := range list[:min(len(list), mostInstances)] {
		if !instanceID.MatchString(i.ID) || i.State != engine.Running && i.State != engine.Ended {
			continue
		}
		if !d.made(l, &i) { // of another server: that it is there is all that counts
			held = append(held, engine.Instance{ID: i.ID, State: i.State})
			continue
		}
		if d.known(l, &i) {
			held = append(held, i)
		}
	}
	return held
}

// known sets what the server knows of an instance, and reports whether the machine can have it. The caller
// holds mu.
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
		default: // the key was given to others, or given anew: that it is there is all that counts
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
	if len(i.Tags) > mostTags {
		i.Tags = nil
	}
	for k, v := range i.Tags {
		if plainText(k) != k || plainText(v) != v {
			delete(i.Tags, k)
		}
	}
	return true
}
