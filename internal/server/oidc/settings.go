package oidc

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"scrimp/internal/lib/identity"
)

// Settings names the identity provider. The zero Settings name none.
type Settings struct {
	Issuer     string   // its URL, exactly as its ID tokens have it in iss
	Client     string   // ID under which this server is registered there
	SecretFile string   // file with the client's secret
	Claim      string   // claim with the email address; "": email
	GroupClaim string   // claim with the groups; "": groups
	Groups     []string // GROUP=TEAM:ROLE
}

// Bounds on texts, in bytes.
const (
	longestText   = 2048 // of an issuer, a client's ID, a claim or a group
	longestSecret = 4096
	mostGroups    = 1000 // lines of the group map
)

// given reports whether any setting differs from its default.
func (s Settings) given() bool {
	return s.Issuer != "" || s.Client != "" || s.SecretFile != "" || cmp.Or(s.Claim, emailClaim) != emailClaim ||
		cmp.Or(s.GroupClaim, groupsClaim) != groupsClaim || len(s.Groups) > 0
}

// Claims that providers use for the address and the groups of a person.
const (
	emailClaim  = "email"
	groupsClaim = "groups"
)

// check returns what is wrong with settings that name a provider.
func (s Settings) check() error {
	for _, f := range []struct{ flag, text, example string }{
		{"--oidc-issuer", s.Issuer, "https://accounts.example.com"},
		{"--oidc-client", s.Client, "the ID that the provider gave this server"},
		{"--oidc-secret-file", s.SecretFile, "a file with the secret that belongs to the ID"},
	} {
		if f.text == "" {
			return fmt.Errorf("%s is missing: write %s, or leave out all flags that begin with --oidc", f.flag, f.example)
		}
		if len(f.text) > longestText {
			return fmt.Errorf("%s has %d bytes: write at most %d", f.flag, len(f.text), longestText)
		}
	}
	if len(s.Claim) > longestText || len(s.GroupClaim) > longestText {
		return fmt.Errorf("--oidc-claim or --oidc-groups-claim is too long: write at most %d bytes", longestText)
	}
	if _, err := s.issuer(); err != nil {
		return err
	}
	if _, err := s.secret(); err != nil {
		return err
	}
	return s.private()
}

// private returns an error if everybody on the machine can read or replace the secret.
func (s Settings) private() error {
	info, err := os.Stat(s.SecretFile)
	if err != nil {
		return fmt.Errorf("--oidc-secret-file: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("--oidc-secret-file %s: every user of this machine has access to it (mode %04o): chmod 600 %[1]s",
			s.SecretFile, info.Mode().Perm())
	}
	return nil
}

// issuer parses the address of the provider. It accepts plain HTTP on loopback only.
func (s Settings) issuer() (*url.URL, error) {
	u, err := url.Parse(s.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("--oidc-issuer %q is not an issuer: write https://HOST, with the path that the provider gives",
			s.Issuer)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("--oidc-issuer %s does not begin with https: plain HTTP is for this machine only", s.Issuer)
	}
	return u, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// secret reads the client's secret. Errors name the file and never its contents.
func (s Settings) secret() (string, error) {
	info, err := os.Stat(s.SecretFile)
	if err != nil {
		return "", fmt.Errorf("--oidc-secret-file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > longestSecret {
		return "", fmt.Errorf("--oidc-secret-file %s: write a file with the secret alone, in at most %d bytes", s.SecretFile,
			longestSecret)
	}
	text, err := os.ReadFile(s.SecretFile)
	if err != nil {
		return "", fmt.Errorf("--oidc-secret-file: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", fmt.Errorf("--oidc-secret-file %s: write the secret alone, on one line", s.SecretFile)
	}
	return secret, nil
}

// errGroup describes a line of the group map.
var errGroup = errors.New("write GROUP=TEAM:ROLE, as in ml-eng=vision:submitter, or GROUP=*:ROLE for all teams")

// groups parses the group map. The name of a group may contain "=", as those of LDAP do.
func (s Settings) groups() (map[string][]identity.Grant, error) {
	if len(s.Groups) > mostGroups {
		return nil, fmt.Errorf("--oidc-group is given %d times: give it at most %d times", len(s.Groups), mostGroups)
	}
	all := map[string][]identity.Grant{}
	for _, text := range s.Groups {
		at := strings.LastIndexByte(text, '=')
		if at < 1 || len(text) > longestText {
			return nil, fmt.Errorf("--oidc-group %q: %w", text, errGroup)
		}
		team, role, ok := strings.Cut(text[at+1:], ":")
		if !ok {
			return nil, fmt.Errorf("--oidc-group %q: %w", text, errGroup)
		}
		g, err := identity.ParseGrant(team + "=" + role)
		if err != nil {
			return nil, fmt.Errorf("--oidc-group %q: %w: %w", text, err, errGroup)
		}
		all[text[:at]] = append(all[text[:at]], g)
	}
	return all, nil
}
