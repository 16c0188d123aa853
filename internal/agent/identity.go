package agent

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/agent/place"
	"scrimp/internal/lib/durable"
)

// identity is the machine's key, by which the server knows it. The agent's own folder holds it, so
// that a restarted agent continues with it.
type identity struct {
	Seed       []byte `json:"seed"`
	Registered bool   `json:"registered"` // the server has the public key
	Isolated   bool   `json:"isolated"`   // the server knows that programs run as separate users

	path string
	key  ed25519.PrivateKey
}

// tokenFile returns the path of the bootstrap token, which exists until the machine has registered.
func tokenFile(machine string) string {
	return filepath.Join(place.OwnFolder(machine), "bootstrap.token")
}

// KeepToken stores the bootstrap token for the agent in a file, because a program of the same user
// could read it from the environment.
func KeepToken(machine, token string) error {
	if !filepath.IsAbs(machine) {
		return fmt.Errorf("agent: SCRIMP_MACHINE_DIR is %q, want the absolute path of a folder for this machine", machine)
	}
	if err := os.MkdirAll(place.OwnFolder(machine), 0o700); err != nil {
		return fmt.Errorf("store the machine's token: %w", err)
	}
	if err := durable.Replace(tokenFile(machine), []byte(token)); err != nil {
		return fmt.Errorf("store the machine's token: %w", err)
	}
	return nil
}

// keptToken returns the token that KeepToken stored; empty once the machine has registered.
func keptToken(machine string) (string, error) {
	b, err := os.ReadFile(tokenFile(machine))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// openIdentity reads the machine's key, or makes one.
func openIdentity(machine string) (*identity, error) {
	i := &identity{path: filepath.Join(place.OwnFolder(machine), "machine.key")}
	b, err := os.ReadFile(i.path)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, i); err != nil || len(i.Seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("read the machine's key %s: the file is damaged (%w)", i.path, err)
		}
		i.key = ed25519.NewKeyFromSeed(i.Seed)
		return i, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the machine's key: %w", err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make the machine's key: %w", err)
	}
	i.key, i.Seed = key, key.Seed()
	err = i.write()
	return i, err
}

// write stores the key before the server learns it: a machine that lost its key could not register another.
func (i *identity) write() error {
	b, err := json.Marshal(i)
	if err == nil {
		err = durable.Replace(i.path, b)
	}
	if err != nil {
		return fmt.Errorf("store the machine's key: %w", err)
	}
	return nil
}

// public returns the public key.
func (i *identity) public() ed25519.PublicKey {
	k, _ := i.key.Public().(ed25519.PublicKey)
	return k
}

// checkSeparation returns an error if programs no longer run as separate users although the server assumes
// it. The server places tasks of several users on such a machine.
func (i *identity) checkSeparation(c *Config) error {
	if !i.Registered || !i.Isolated {
		return nil
	}
	if ok, why := c.separate(); !ok {
		return fmt.Errorf("the server knows this machine as one whose programs run as users of their own, and they no "+
			"longer can: %s", why)
	}
	return nil
}

// registered records that the server has the key, and removes the token, which has no further use.
func (i *identity) registered(machine string, isolated bool) error {
	i.Registered, i.Isolated = true, isolated
	if err := i.write(); err != nil {
		return err
	}
	if err := os.Remove(tokenFile(machine)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the machine's token: %w", err)
	}
	return nil
}
