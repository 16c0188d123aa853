package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// vaultKey is the file of the data folder that secrets are sealed with. A copy
// of the folder without it, such as a backup of the database, tells nothing.
const vaultKey = "secrets.key"

// Secrets lie in a folder, a file each job.
const (
	secretsFolder = "secrets"
	sealedEnd     = ".sealed"
	openEnd       = ".json" // of a release that did not seal them
)

// vault is AES-256-GCM under the folder's key.
func (s *Server) vault() (cipher.AEAD, error) {
	text, err := keyFile(filepath.Join(s.opts.Dir, vaultKey))
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

func (s *Server) secretFile(job string) string {
	return filepath.Join(s.opts.Dir, secretsFolder, job+sealedEnd)
}

func (s *Server) openFile(job string) string {
	return filepath.Join(s.opts.Dir, secretsFolder, job+openEnd)
}

// keepSecrets seals the values for their job: in another job's place they do not open.
func (s *Server) keepSecrets(job string, values map[string]string) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	v, err := s.vault()
	if err != nil {
		return err
	}
	nonce := make([]byte, v.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	path := s.secretFile(job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, v.Seal(nonce, nonce, text, []byte(job)), 0o600)
}

// secrets returns what was kept for the job; nil where nothing was.
func (s *Server) secrets(job string) map[string]string {
	m, err := s.openSecrets(job)
	if err != nil {
		s.opts.Log.Error("secrets not read", "job", job, "error", err)
	}
	return m
}

func (s *Server) openSecrets(job string) (m map[string]string, err error) {
	sealed, err := os.ReadFile(s.secretFile(job))
	if errors.Is(err, os.ErrNotExist) { // none, or those of a release that did not seal them
		old, err := os.ReadFile(s.openFile(job))
		if err != nil {
			return nil, nil
		}
		err = json.Unmarshal(old, &m)
		return m, err
	}
	if err != nil {
		return nil, err
	}
	v, err := s.vault()
	if err != nil {
		return nil, err
	}
	if len(sealed) < v.NonceSize() {
		return nil, errors.New("the file is cut short")
	}
	text, err := v.Open(nil, sealed[:v.NonceSize()], sealed[v.NonceSize():], []byte(job))
	if err != nil {
		return nil, fmt.Errorf("the secrets of %s do not open with %s", job, vaultKey)
	}
	err = json.Unmarshal(text, &m)
	return m, err
}
