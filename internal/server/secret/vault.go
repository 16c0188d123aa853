// Package secret keeps what the log must never hold: the sealed values of jobs' secrets, and the keys of a data
// folder.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// vaultKey is the name of the key file with which secrets are sealed. A copy of the folder without it, such as a
// backup of the database, reveals nothing.
const vaultKey = "secrets.key"

// Secrets are in a folder with a file for each name, and for each job a folder with its entries.
const (
	folder       = "secrets"
	entries      = "entries"
	sealedSuffix = ".sealed"
)

// Vault keeps the values of jobs' secrets in a data folder, sealed with AES-256-GCM under the folder's key.
type Vault struct{ Dir string }

// Values are the parts of a job's environment that stay out of the log.
type Values struct {
	Secrets map[string]string // masked in the job's output
	Shell   map[string]string // variables of the submitter's shell
}

// shellPrefix is the prefix of shell variables in a sealed file. Names of variables contain no spaces.
const shellPrefix = "shell "

// flat returns the values in the form of a sealed file.
func (v *Values) flat() map[string]string {
	all := maps.Clone(v.Secrets)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range v.Shell {
		all[shellPrefix+name] = value
	}
	return all
}

func valuesOf(flat map[string]string) (v Values) {
	v.Secrets = map[string]string{}
	for name, value := range flat {
		if of, ok := strings.CutPrefix(name, shellPrefix); ok {
			if v.Shell == nil {
				v.Shell = map[string]string{}
			}
			v.Shell[of] = value
		} else {
			v.Secrets[name] = value
		}
	}
	return v
}

// KeyFile returns a random key, which it creates on first use, readable by the user alone.
func KeyFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) >= 32 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read key: %w", err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // rand.Read never fails
	text := hex.EncodeToString(key)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write key: %w", err)
	}
	return text, nil
}

func (v Vault) cipher() (cipher.AEAD, error) {
	text, err := KeyFile(filepath.Join(v.Dir, vaultKey))
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", vaultKey, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", vaultKey, err)
	}
	return cipher.NewGCM(block)
}

// File returns the path of the values under a name: that of a job or of a group, or of an entry.
func (v Vault) File(name string) string {
	if strings.Contains(name, "/") {
		return filepath.Join(v.Dir, folder, entries, name+sealedSuffix)
	}
	return filepath.Join(v.Dir, folder, name+sealedSuffix)
}

// Add seals the values of a job that is being submitted as an entry of its own, which no other submission of that name
// uses. It returns the name of the entry; empty if there are no values.
func (v Vault) Add(job string, values Values) (entry string, err error) {
	if len(values.Secrets)+len(values.Shell) == 0 {
		return "", nil
	}
	entry = job + "/" + strings.ToLower(rand.Text())
	return entry, v.Keep(entry, values)
}

// Keep seals the values for a name: under another name they do not open.
func (v Vault) Keep(job string, values Values) error {
	if len(values.Secrets)+len(values.Shell) == 0 {
		return nil
	}
	text, err := json.Marshal(values.flat())
	if err != nil {
		return err
	}
	sealed, err := v.Seal(job, text)
	if err != nil {
		return err
	}
	path := v.File(job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, sealed, 0o600)
}

// Seal seals a text for a name: under another name it does not open.
func (v Vault) Seal(name string, text []byte) ([]byte, error) {
	c, err := v.cipher()
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, c.NonceSize())
	_, _ = rand.Read(nonce) // rand.Read never fails
	return c.Seal(nonce, nonce, text, []byte(name)), nil
}

// Unseal returns the text that Seal has sealed for the name.
func (v Vault) Unseal(name string, sealed []byte) ([]byte, error) {
	c, err := v.cipher()
	if err != nil {
		return nil, err
	}
	if len(sealed) < c.NonceSize() {
		return nil, fmt.Errorf("the secrets of %s: the file is truncated", name)
	}
	text, err := c.Open(nil, sealed[:c.NonceSize()], sealed[c.NonceSize():], []byte(name))
	if err != nil {
		return nil, fmt.Errorf("the secrets of %s do not open with %s", name, vaultKey)
	}
	return text, nil
}

// Current returns the values of a job: those of its last resumption, otherwise those of the entry.
func (v Vault) Current(job, entry string) (values Values, err error) {
	if values, err = v.Open(job); err != nil || len(values.Secrets)+len(values.Shell) > 0 {
		return values, err
	}
	return v.Open(entry)
}

// Open returns the values under a name; empty if there are none.
func (v Vault) Open(job string) (values Values, err error) {
	if job == "" {
		return values, nil
	}
	sealed, err := os.ReadFile(v.File(job))
	if errors.Is(err, os.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return values, err
	}
	text, err := v.Unseal(job, sealed)
	if err != nil {
		return values, err
	}
	var flat map[string]string
	if err := json.Unmarshal(text, &flat); err != nil {
		return values, err
	}
	return valuesOf(flat), nil
}

// Forget deletes the secrets of a job with all its entries, if there are any.
func (v Vault) Forget(job string) error {
	if err := os.RemoveAll(filepath.Join(v.Dir, folder, entries, filepath.Base(job))); err != nil {
		return err
	}
	if err := os.Remove(v.File(job)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Jobs returns the jobs with secrets.
func (v Vault) Jobs() (map[string]bool, error) {
	list, err := os.ReadDir(filepath.Join(v.Dir, folder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	jobs := make(map[string]bool, len(list))
	for _, e := range list {
		if job, sealed := strings.CutSuffix(e.Name(), sealedSuffix); sealed {
			jobs[job] = true
		}
	}
	if err != nil {
		return jobs, err
	}
	list, err = os.ReadDir(filepath.Join(v.Dir, folder, entries))
	if errors.Is(err, os.ErrNotExist) {
		return jobs, nil
	}
	for _, e := range list {
		jobs[e.Name()] = true
	}
	return jobs, err
}
