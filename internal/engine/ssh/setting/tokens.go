package setting

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/durable"
)

// TokensName is the file in an engine's folder with the hashes of its machines' join tokens. The
// driver reads it for each connecting machine, so a token removed from it is invalid at once.
const TokensName = "join.json"

// tokenPrefix is the prefix of join tokens: join.ENGINE.MACHINE.SECRET.
const tokenPrefix = "join."

// secretBytes is the number of random bytes in a token.
const secretBytes = 32

// kept is the stored form of a token.
type kept struct {
	Hash string    `json:"sha256"`
	Made time.Time `json:"made"`
}

// readTokens returns an engine's tokens by machine, or none without a file.
func readTokens(dir string) (map[string]kept, error) {
	tokens := map[string]kept{}
	text, err := os.ReadFile(filepath.Join(dir, TokensName))
	if errors.Is(err, os.ErrNotExist) {
		return tokens, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &tokens)
	}
	if err != nil {
		return nil, fmt.Errorf("read the tokens of machines: %w: scrimp engine token makes new ones once %s is removed", err,
			filepath.Join(dir, TokensName))
	}
	return tokens, nil
}

// NewToken makes the join token of a machine in a setting, and invalidates the previous one.
func NewToken(data string, s *engine.Setting, machine string) (token string, err error) {
	with, err := Read(s)
	if err != nil {
		return "", err
	}
	if !with.joins(machine) {
		return "", fmt.Errorf("engine %s has no machine %s that joins: write {join: %s} under its hosts", s.Name, machine,
			machine)
	}
	dir := Dir(data, s.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	tokens, err := readTokens(dir)
	if err != nil {
		return "", err
	}
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	token = tokenPrefix + s.Name + "." + machine + "." + base64.RawURLEncoding.EncodeToString(secret)
	tokens[machine] = kept{hash(token), time.Now().UTC()}
	text, err := json.Marshal(tokens)
	if err != nil {
		return "", err
	}
	return token, durable.Replace(filepath.Join(dir, TokensName), text)
}

// RevokeTokens invalidates all tokens of an engine. The driver disconnects machines that have
// joined within seconds.
func RevokeTokens(data, name string) error {
	err := os.Remove(filepath.Join(Dir(data, name), TokensName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenOf returns the engine and the machine in a join token; ok is false for any other token.
func TokenOf(token string) (name, machine string, ok bool) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	name, rest, named := strings.Cut(rest, ".")
	at := strings.LastIndexByte(rest, '.')
	if !ok || !named || at < 1 || name == "" || !hostName.MatchString(rest[:at]) {
		return "", "", false
	}
	return name, rest[:at], true
}

// Joins returns the names of a setting's machines that connect themselves.
func Joins(s *engine.Setting) (list []string, err error) {
	with, err := Read(s)
	for _, m := range with.Hosts {
		if m.Join != "" {
			list = append(list, m.Name)
		}
	}
	return list, err
}

func (w *With) joins(machine string) bool {
	return slices.ContainsFunc(w.Hosts, func(m Machine) bool { return m.Join != "" && m.Name == machine })
}

// IsToken reports whether a token is the newest one of a machine, in the folder of its engine.
func IsToken(dir, machine, token string) (bool, error) {
	tokens, err := readTokens(dir)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare([]byte(tokens[machine].Hash), []byte(hash(token))) == 1, nil
}
