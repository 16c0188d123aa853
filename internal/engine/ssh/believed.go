package ssh

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh/link"
	"scrimp/internal/market"
)

// A machine that joined is anyone with its token. Its answers decide only what runs on it: they do not affect other
// machines or prices, and cannot control a terminal.
const (
	maxInstances = 10000 // instances in a list
	maxTags      = 64    // tags of an instance
)

var instanceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// believed validates a machine's list of instances and adds what the server knows of each. It
// trusts a machine reached by ssh, because the server copied the program that answers. The caller
// holds mu.
func (d *Driver) believed(l *link.Link, list []engine.Instance) []engine.Instance {
	if _, joins := l.Way.(*joining); !joins {
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
func (d *Driver) known(l *link.Link, i *engine.Instance) bool {
	key, _, _ := strings.Cut(i.Key, rankMark)
	now := time.Now().UTC()
	i.Rate, i.Notice, i.Interrupts, i.Bill = *l.Host.Rate, 0, time.Time{}, nil
	if k := d.journal.Keys[key]; k != nil {
		rank := slices.Index(k.Hosts, l.Host.Name)
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
	i.Offer, i.Key = market.OfferID(link.PlainText(string(i.Offer))), link.PlainText(i.Key)
	if len(i.Tags) > maxTags {
		i.Tags = nil
	}
	for k, v := range i.Tags {
		if link.PlainText(k) != k || link.PlainText(v) != v {
			delete(i.Tags, k)
		}
	}
	return true
}
