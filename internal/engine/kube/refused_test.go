//go:build !local

package kube

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// token returns a token of the site's user with an expiry, signed as the cluster signs them.
func (s *site) token(expires time.Time) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "etc", "accounts.key"))
	must.Do(s, err)
	block, _ := pem.Decode(text)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	must.Do(s, err)
	type object = map[string]any
	const issuer = "https://kubernetes.default.svc"
	uid := s.Do(s, "get", "serviceaccount", "scrimp", "-n", s.namespace, "-o", "jsonpath={.metadata.uid}")
	claims, err := json.Marshal(object{"iss": issuer, "aud": []string{issuer}, "exp": expires.Unix(),
		"iat": expires.Add(-time.Hour).Unix(), "nbf": expires.Add(-time.Hour).Unix(),
		"sub": "system:serviceaccount:" + s.namespace + ":scrimp", "kubernetes.io": object{"namespace": s.namespace,
			"serviceaccount": object{"name": "scrimp", "uid": uid}}})
	must.Do(s, err)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	x, y, err := ecdsa.Sign(rand.Reader, key, sum[:])
	must.Do(s, err)
	return signed + "." + encode(append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...))
}

// tolerance is how long the API server accepts an expired token, because clocks differ.
const tolerance = time.Minute

// tokenExpires checks that an expired token is reported with the fix and ends no machine, and that a renewed
// kubeconfig needs no restart.
func tokenExpires(s *site) {
	s.nodes("std", "4", 1)
	text, err := os.ReadFile(s.config)
	must.Do(s, err)
	w := s.with()
	w.Kubeconfig = filepath.Join(s.TempDir(), "config")
	logsIn := func(expires time.Time) {
		s.Helper()
		renewed := regexp.MustCompile(`token: [^}]*`).ReplaceAllString(string(text), "token: "+s.token(expires))
		must.Do(s, os.WriteFile(w.Kubeconfig, []byte(renewed), 0o600))
	}
	first := s.launched(s.driver(), "a.1", 1)[0]
	logsIn(time.Now().Add(15*time.Second - tolerance))
	d := s.driverOf(w, "http://127.0.0.1:9")
	s.until("the token is not taken any more", func() bool {
		list, err2 := d.List(s.Context())
		err = err2
		if len(list) > 0 && list[0].State == engine.Ended {
			s.Fatalf("it ended with the token: %+v", list[0])
		}
		return err != nil
	})
	if !errors.Is(err, errCredentials) || !strings.Contains(err.Error(), "renew them (a kubeconfig's token") {
		s.Errorf("with an expired token: %v", err)
	}
	f := d.Examine(s.Context())
	if len(f) != 1 || f[0].OK || !strings.Contains(f[0].Text, "renew them (a kubeconfig's token") {
		s.Errorf("the examination finds %+v", f)
	}
	logsIn(time.Now().Add(time.Hour))
	s.until("the renewed one is taken", func() bool { _, err := d.List(s.Context()); return err == nil })
	s.running(d, "a.1", first)
	s.Evict(s, s.namespace, s.pods()[0])
	s.ends(d, "a.1", engine.Interrupted)
}

// holdsNone requests more than any node has, and then as much as a full node has. Only the first wait's reason includes
// the fix.
func holdsNone(s *site) {
	s.nodes("std", "1", 1)
	w := s.with()
	large := w.Pools[0]
	large.Name, large.CPUs = "large", 64
	w.Pools = append(w.Pools[:1], large)
	d := s.driverOf(w, "http://127.0.0.1:9")
	waits := func(key, offer, want string) (why string) {
		s.Helper()
		s.until("the scheduler's word on "+key, func() bool {
			_, err := s.ask(d, key, offer, 1)
			if !errors.Is(err, engine.ErrPending) {
				s.Fatalf("%s: %v", key, err)
			}
			why = err.Error()
			return strings.Contains(why, want)
		})
		return why
	}
	const fix = "No present node can hold it, even when empty: lower cpus, memory and the rest of pool large"
	waits("a.1", "k8s/large/64c-1g/on-demand", "Insufficient cpu")
	waits("a.1", "k8s/large/64c-1g/on-demand", fix)
	s.launched(d, "a.2", 1)
	if why := waits("a.3", std, "Insufficient cpu"); strings.Contains(why, "even when empty") {
		s.Errorf("of a node that is full it says %q", why)
	}
	said := ""
	w.Kubeconfig, w.Namespace = s.Kubeconfig(), s.namespace // an administrator, who sees nodes
	for _, f := range s.driverOf(w, "http://127.0.0.1:9").Examine(s.Context()) {
		said += f.Name + ": " + f.Text + "\n"
	}
	if !strings.Contains(said, "; none of its 1 nodes can hold a machine: lower cpus and memory") ||
		!strings.Contains(said, "; 1 of its 1 nodes can hold one when empty") {
		s.Errorf("the examination finds\n%s", said)
	}
}
