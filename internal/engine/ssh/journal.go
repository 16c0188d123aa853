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

// keepKeys is how long a launch stays known after its machines have ended.
const keepKeys = 48 * time.Hour

// journal is what has to survive the server: the machines themselves have the rest.
type journal struct {
	Keys  map[string]*launched         `json:"keys"`
	Terms map[market.OfferID]*contract `json:"terms"` // what machines of each kind have cost
	Facts map[string]*hostd.Facts      `json:"facts"` // by name of a machine, as last seen

	replace func(path string, text []byte) error // the file
}

// launched says which machines a key was given, before they were asked.
type launched struct {
	Hosts []string       `json:"hosts"` // by rank
	Offer market.OfferID `json:"offer"`
	Rate  money.Rate     `json:"rate,omitzero"` // of an hour of one of them
	At    time.Time      `json:"at"`
	// GivenUp says that it is not wanted any more: what began by it is ended when its machine is reached.
	GivenUp bool      `json:"given_up,omitempty"`
	Over    time.Time `json:"over,omitzero"` // when all of it was seen to have ended
	// Refused says that it was taken back, since one of its machines refused: the key may be given others, and
	// what began by it until then is not theirs. Try counts how often that was.
	Refused bool `json:"refused,omitempty"`
	Try     int  `json:"try,omitempty"`
}

// rankMark stands between a launch's key and the rank of a machine of several.
const rankMark = "#"

// keyOf is by which the machine of a rank knows the launch.
func (k *launched) keyOf(key string, rank int) string {
	switch {
	case k.Try > 0:
		return fmt.Sprint(key, rankMark, rank, ".", k.Try)
	case len(k.Hosts) > 1:
		return fmt.Sprint(key, rankMark, rank)
	}
	return key
}

// has reports whether a machine began by a launch, and not by what the same key was given before.
func (k *launched) has(key string, i *engine.Instance) bool {
	return i.Key == key && i.Launched.Equal(k.At)
}

// wants reports whether what a machine began by a key is to go on: what it was asked behind a cable that was out
// it may begin much later. A key that is not known is somebody else's affair.
func (j *journal) wants(host, begun string) bool {
	key, _, _ := strings.Cut(begun, rankMark)
	k := j.Keys[key]
	if k == nil {
		return true
	}
	rank := slices.Index(k.Hosts, host)
	return !k.GivenUp && !k.Refused && rank >= 0 && k.keyOf(key, rank) == begun
}

// contract is what machines of one kind cost an hour while nobody uses them, since when, and what
// they had cost before that was so.
type contract struct {
	Count  int          `json:"count"`
	Rate   money.Rate   `json:"rate"` // of one, idle
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
		return nil, fmt.Errorf("read %s: %w: move it away to begin anew; what runs on the machines is found again", path, err)
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
