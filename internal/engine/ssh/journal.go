package ssh

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// journalName is the file in an engine's folder that survives the server.
const journalName = "ssh.json"

// keepKeys is how long a launch stays known after its instances have ended.
const keepKeys = 48 * time.Hour

// journal is the state that must survive the server; the machines themselves keep the rest.
type journal struct {
	Keys  map[string]*launched         `json:"keys"`
	Terms map[market.OfferID]*contract `json:"terms"` // cost so far of the machines of each offer
	Facts map[string]*hostd.Facts      `json:"facts"` // by machine name, as last reported

	replace func(path string, text []byte) error // writes the file
}

// launched records the hosts chosen for a launch key. The driver writes it before it contacts them,
// so a restarted server finds them again.
type launched struct {
	Hosts []string       `json:"hosts"` // by rank
	Offer market.OfferID `json:"offer"`
	Rate  money.Rate     `json:"rate,omitzero"` // price of an hour of one machine
	At    time.Time      `json:"at"`
	// GivenUp is set once nobody wants the launch. The driver ends whatever started under it as
	// soon as it reaches the host.
	GivenUp bool      `json:"given_up,omitempty"`
	Over    time.Time `json:"over,omitzero"` // when all of its instances were known to have ended
	// Refused is set if the launch was undone because a machine refused. The key may get other
	// machines then, and instances that started before do not belong to that launch. Try counts how
	// often that happened.
	Refused bool `json:"refused,omitempty"`
	Try     int  `json:"try,omitempty"`
}

// rankMark separates a launch's key from the rank of its machine.
const rankMark = "#"

// keyOf returns the launch key that the host of the given rank uses.
func (k *launched) keyOf(key string, rank int) string {
	switch {
	case k.Try > 0:
		return fmt.Sprint(key, rankMark, rank, ".", k.Try)
	case len(k.Hosts) > 1:
		return fmt.Sprint(key, rankMark, rank)
	}
	return key
}

// has reports whether instance i belongs to this launch and not to an earlier one with the same key.
func (k *launched) has(key string, i *engine.Instance) bool {
	return i.Key == key && i.Launched.Equal(k.At)
}

// wants reports whether a machine should continue the launch it began. A host that was unreachable
// may start a launch long after the driver gave it up. wants returns true for unknown keys: another
// server owns them.
func (j *journal) wants(host, begun string) bool {
	key, _, _ := strings.Cut(begun, rankMark)
	k := j.Keys[key]
	if k == nil {
		return true
	}
	rank := slices.Index(k.Hosts, host)
	return !k.GivenUp && !k.Refused && rank >= 0 && k.keyOf(key, rank) == begun
}

// contract records the hourly cost of unused machines of one kind, since when it holds, and the
// cost before that.
type contract struct {
	Count  int          `json:"count"`
	Rate   money.Rate   `json:"rate"` // price of one unused machine
	From   time.Time    `json:"from"`
	Before money.Amount `json:"before"`
}

func readJournal(dir string) (*journal, error) {
	j := &journal{replace: durable.Replace}
	path := filepath.Join(dir, journalName)
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w: move it away to start with an empty one; the server finds again what "+
			"runs on the machines", path, err)
	}
	if j.Keys == nil {
		j.Keys = map[string]*launched{}
	}
	if j.Terms == nil {
		j.Terms = map[market.OfferID]*contract{}
	}
	if j.Facts == nil {
		j.Facts = map[string]*hostd.Facts{}
	}
	return j, nil
}

func (j *journal) write(dir string) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return j.replace(filepath.Join(dir, journalName), text)
}
