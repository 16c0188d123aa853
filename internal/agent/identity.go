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

// identity is who the machine is to its server: the key that it made. It lies in the
// agent's own folder, so that an agent that is started again goes on with it.
type identity struct {
	Seed       []byte `json:"seed"`
	Registered bool   `json:"registered"` // the server has the public half
	Isolated   bool   `json:"isolated"`   // and was told that programs run as users of their own

	path string
	key  ed25519.PrivateKey
}

// tokenFile holds the bootstrap token until the machine has registered.
func tokenFile(machine string) string {
	return filepath.Join(place.OwnFolder(machine), "bootstrap.token")
}

// KeepToken puts the bootstrap token where the agent finds it, out of the environment that
// a program of the same user could read.
func KeepToken(machine, token string) error {
	if !filepath.IsAbs(machine) {
		return fmt.Errorf("agent: SCRIMP_MACHINE_DIR is %q, want the absolute path of a folder for this machine", machine)
	}
	if err := os.MkdirAll(place.OwnFolder(machine), 0o700); err != nil {
		return fmt.Errorf("keep the machine's token: %w", err)
	}
	if err := durable.Replace(tokenFile(machine), []byte(token)); err != nil {
		return fmt.Errorf("keep the machine's token: %w", err)
	}
	return nil
}

// keptToken is what KeepToken kept; "" where the machine has registered.
func keptToken(machine string) (string, error) {
	b, err := os.ReadFile(tokenFile(machine))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// openIdentity reads the machine's key, or makes it.
func openIdentity(machine string) (*identity, error) {
	i := &identity{path: filepath.Join(place.OwnFolder(machine), "machine.key")}
	b, err := os.ReadFile(i.path)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, i); err != nil || len(i.Seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("read the machine's key %s: it is damaged (%w)", i.path, err)
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

// write keeps the key before the server hears of it: one that is lost could register no other.
func (i *identity) write() error {
	b, err := json.Marshal(i)
	if err == nil {
		err = durable.Replace(i.path, b)
	}
	if err != nil {
		return fmt.Errorf("keep the machine's key: %w", err)
	}
	return nil
}

// public is the half that the server knows.
func (i *identity) public() ed25519.PublicKey {
	k, _ := i.key.Public().(ed25519.PublicKey)
	return k
}

// stays reports why the machine is not what the server takes it for: it may have tasks of
// several users only where their programs are kept apart.
func (i *identity) stays(c *Config) error {
	if !i.Registered || !i.Isolated {
		return nil
	}
	if ok, why := c.separate(); !ok {
		return fmt.Errorf("the server knows this machine as one whose programs run as users of their own, and they no "+
			"longer can: %s", why)
	}
	return nil
}

// registered notes that the server has the key: the token is of no use any more.
func (i *identity) registered(machine string, isolated bool) error {
	i.Registered, i.Isolated = true, isolated
	if err := i.write(); err != nil {
		return err
	}
	if err := os.Remove(tokenFile(machine)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop the machine's token: %w", err)
	}
	return nil
}
