//go:build !local

package deploy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/image"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/testbin"
)

// token is the admin's, as a Secret has it.
var token = "scrimp_" + strings.Repeat("Ab3", 20)

// site is a cluster with a node that is real.
type site struct {
	*kubetest.Cluster
	*testing.T
	node *kubetest.RealNode
	tls  *http.Client // by which its servers are asked; nil: they speak plain HTTP
}

func newSite(t *testing.T) *site {
	t.Helper()
	kubetest.Installed(t, "helm")
	s := &site{Cluster: kubetest.Start(t), T: t}
	s.Import(t, serverImage(t))
	s.node = s.RealNode(t, "real-1")
	for _, ns := range []string{namespace, "ml-2"} {
		s.Do(t, "create", "namespace", ns)
		s.Do(t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted",
			"pod-security.kubernetes.io/warn=restricted")
		s.Do(t, "-n", ns, "create", "secret", "generic", "scrimp-admin", "--from-literal=token="+token)
	}
	return s
}

// serverImage is as make dist makes it.
func serverImage(t *testing.T) image.Image {
	t.Helper()
	body, err := os.ReadFile(testbin.Full.Path(t))
	must.Do(t, err)
	return image.Image{Name: "localhost/scrimp:1", Entrypoint: []string{"/usr/bin/scrimp", "serve"}, User: "65532:65532",
		Files: []image.File{{Path: "usr/bin/scrimp", Body: body, Mode: 0o755}, {Path: "data/"}}}
}

const local = "images: [{name: scrimp, newName: localhost/scrimp, newTag: \"1\"}]\n"

// disk makes a volume of a folder of this machine, as the kubelet hands over one that a provisioner has made.
func (s *site) disk(ns, claim, mode, size string) {
	s.Helper()
	dir := filepath.Join(s.Dir, "disk-"+ns)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chown(dir, 0, 65532)
	}
	if err == nil {
		err = os.Chmod(dir, 0o775|os.ModeSetgid)
	}
	must.Do(s, err)
	s.Apply(s.T, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec:
  accessModes: [%s]
  capacity: {storage: %s}
  claimRef: {namespace: %[1]s, name: %[4]s}
  hostPath: {path: %[5]s}
`, ns, mode, size, claim, dir))
}

// pod is one of the server's.
type pod struct {
	name, ip string
	ready    bool
	running  bool
}

func (s *site) pods(ns string) (all []pod) {
	s.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Status   struct {
				PodIP             string
				ContainerStatuses []struct {
					Ready bool
					State struct{ Running *struct{} }
				}
			}
		}
	}
	text := s.Do(s.T, "-n", ns, "get", "pods", "-l", "app.kubernetes.io/name=scrimp", "-o", "json")
	must.Do(s, json.Unmarshal([]byte(text), &list))
	for _, i := range list.Items {
		if i.Metadata.DeletionTimestamp != "" || len(i.Status.ContainerStatuses) == 0 {
			continue
		}
		c := i.Status.ContainerStatuses[0]
		all = append(all, pod{i.Metadata.Name, i.Status.PodIP, c.Ready, c.State.Running != nil})
	}
	return all
}

// led waits until so many pods run, and one of them leads that is not the one named; it returns that and the others.
func (s *site) led(ns string, n int, not string) (leads pod, follow []pod) {
	s.Helper()
	eventually.True(s.T, fmt.Sprintf("one of %d servers of %s leads", n, ns), func() bool {
		all := s.pods(ns)
		leads, follow = pod{}, nil
		for _, p := range all {
			switch {
			case !p.running:
				return false
			case p.ready && leads.name == "":
				leads = p
			default:
				follow = append(follow, p)
			}
		}
		return len(all) == n && leads.name != "" && leads.name != not
	}, func() string { return s.story(ns) })
	for _, p := range follow {
		if p.ready {
			s.Errorf("%s and %s lead", leads.name, p.name)
		}
	}
	return leads, follow
}

// story is what is known of servers that do not come to lead.
func (s *site) story(ns string) string {
	events, _ := s.Try("-n", ns, "get", "events")
	all, _ := s.Try("-n", ns, "get", "all,pvc", "-o", "wide")
	logs, _ := s.Try("-n", ns, "logs", "-l", "app.kubernetes.io/name=scrimp", "--tail=20", "--prefix")
	return all + "\n" + events + "\n" + logs
}

// at is the address of a server, and by what it is asked.
func (s *site) at(p pod) (string, *http.Client) {
	if s.tls != nil {
		return "https://" + p.ip + ":7077", s.tls
	}
	return "http://" + p.ip + ":7077", http.DefaultClient
}

// asks sends a request to a server, and returns its status.
func (s *site) asks(p pod, path, token string) int {
	s.Helper()
	address, h := s.at(p)
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, address+path, nil)
	must.Do(s, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := h.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// serves holds that a server asks for its token, and that its engine may do in the cluster what it needs.
func (s *site) serves(p pod) {
	s.Helper()
	eventually.True(s.T, "the admin's token is good", func() bool { return s.asks(p, "/v1/users", token) == http.StatusOK })
	if code := s.asks(p, "/v1/users", "scrimp_"+strings.Repeat("x", 60)); code != http.StatusUnauthorized {
		s.Errorf("another token is answered with %d", code)
	}
	address, h := s.at(p)
	c := client.New(address, token, h)
	var v client.Server
	eventually.True(s.T, "the cluster answers the server", func() bool {
		ctx, stop := context.WithTimeout(s.Context(), 5*time.Second)
		defer stop()
		return c.Do(ctx, http.MethodGet, "/v1/server", nil, &v) == nil && len(v.Engines) == 1 && v.Engines[0].State == "answers"
	}, func() string { return fmt.Sprintf("%+v", v) })
	if v.Dir != "/data/scrimp" || v.Engines[0].Kind != "kubernetes" {
		s.Errorf("it serves %s with %+v", v.Dir, v.Engines)
	}
	var findings []client.Finding
	if err := c.Do(s.Context(), http.MethodGet, "/v1/engines/cluster/findings", nil, &findings); err != nil {
		s.Error(err)
	}
	for _, f := range findings {
		if !f.OK {
			s.Errorf("%s: %s", f.Name, f.Text)
		}
	}
}

// An API server takes all variants under the restricted profile, and the server of one with a volume and TLS serves on a
// real node.
func TestAServerServesInACluster(t *testing.T) {
	s := newSite(t)
	t.Run("admission", func(t *testing.T) {
		for name, text := range map[string]string{"volume": kustomized(t, local, "volume", "tls", "nodes"),
			"postgres": kustomized(t, local, "postgres", "tls", "budget"),
			"chart": charted(t, "--set", "tls.secret=x,podDisruptionBudget.enabled=true,nodePrices.enabled=true,"+
				"ingress.enabled=true,ingress.host=a.b")} {
			file := filepath.Join(t.TempDir(), name)
			must.Do(t, os.WriteFile(file, []byte(text), 0o600))
			if out := s.Do(t, "-n", namespace, "apply", "--dry-run=server", "-f", file); strings.Contains(out, "Warning") {
				t.Errorf("%s: %s", name, out)
			}
		}
	})
	s.tls = s.certificate(t)
	s.volume()
}

// Of two servers by helm on one PostgreSQL one leads, through an eviction and an upgrade.
func TestServersFailOverInACluster(t *testing.T) {
	lane.Nightly(t, "two servers start, fail over and are upgraded on a real node")
	newSite(t).postgres()
}

// certificate makes the Secret of one for the Service, and returns who trusts it and nothing else.
func (s *site) certificate(t *testing.T) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	c := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"scrimp"},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	must.Do(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must.Do(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := shown(object{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata": object{"name": "scrimp-tls", "namespace": namespace}, "stringData": object{"tls.crt": string(text),
			"ca.crt": string(text), "tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))}})
	s.Apply(t, secret)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "scrimp"}}}
}

func (s *site) volume() {
	s.disk(namespace, "data-scrimp-0", "ReadWriteOnce", "20Gi")
	s.Apply(s.T, kustomized(s.T, local+secured, "volume", "tls"))
	first, _ := s.led(namespace, 1, "")
	s.serves(first)
	for _, args := range []string{"users set ann --grant submitter", "tokens new ann", "doctor"} {
		command := append([]string{"-n", namespace, "exec", first.name, "--", "/usr/bin/scrimp"}, strings.Fields(args)...)
		if out, err := s.Try(command...); err != nil {
			s.Errorf("scrimp %s in the pod: %v\n%s", args, err, out)
		}
	}
	out, err := s.Try("-n", namespace, "exec", first.name, "--", "/usr/bin/scrimp", "engine", "add", "x", "--join", "m", "--rate",
		"1")
	if err == nil || !strings.Contains(out, "/etc/scrimp/engines/engines.yaml") {
		s.Errorf("an engine is added to what a ConfigMap holds: %v\n%s", err, out)
	}
	began := time.Now()
	s.Do(s.T, "-n", namespace, "delete", "pod", first.name)
	s.Logf("the server ended within %v", time.Since(began).Round(100*time.Millisecond))
	var again pod
	eventually.True(s.T, "the server is there again", func() bool {
		again, _ = s.led(namespace, 1, "")
		return again.ip != first.ip
	})
	s.serves(again)
	var users []client.User
	address, h := s.at(again)
	if err := client.New(address, token, h).Do(s.Context(), http.MethodGet, "/v1/users", nil, &users); err != nil ||
		len(users) != 2 {
		s.Errorf("after the next start there are the users %+v, %v", users, err)
	}
}

func (s *site) postgres() {
	const ns = "ml-2"
	db := pgtest.Start(s.T)
	db.Listen(s.T, s.node.Host, "100.64.0.0/10")
	name, _, _ := strings.Cut(strings.TrimPrefix(db.Database(s.T), "postgres://postgres@/"), "?")
	s.disk(ns, "scrimp-data", "ReadWriteMany", "100Gi")
	s.Do(s.T, "-n", ns, "create", "secret", "generic", "scrimp-db",
		"--from-literal=url=postgres://postgres:x@"+s.node.Host+":5432/"+name)
	s.helm("install", ns)
	first, follow := s.led(ns, 2, "")
	s.serves(first)
	for _, p := range follow {
		if live, ready := s.asks(p, "/healthz", ""), s.asks(p, "/readyz", ""); live != 200 || ready != 503 {
			s.Errorf("the one that follows says %d and %d", live, ready)
		}
	}
	began := time.Now()
	s.Evict(s.T, ns, first.name)
	eventually.True(s.T, "another server leads", func() bool { // the follower, or the replacement of the first server
		for _, p := range s.pods(ns) {
			if p.name != first.name && p.ip != "" && s.asks(p, "/readyz", "") == http.StatusOK {
				return true
			}
		}
		return false
	}, func() string { return s.story(ns) })
	s.Logf("the lead went over within %v", time.Since(began).Round(100*time.Millisecond))
	second, _ := s.led(ns, 2, first.name)
	s.Logf("another server is ready after %v", time.Since(began).Round(100*time.Millisecond))
	s.serves(second)
	s.helm("upgrade", ns, "--set", "extraArgs={--retain=30d},podDisruptionBudget.enabled=true")
	began = time.Now()
	eventually.True(s.T, "servers of the new settings lead", func() bool {
		third, _ := s.led(ns, 2, second.name)
		spec, _ := s.Try("-n", ns, "get", "pod", third.name, "-o", "jsonpath={.spec.containers[0].args}")
		return strings.Contains(spec, "--retain=30d")
	})
	s.Logf("a server of the new settings is ready after %v", time.Since(began).Round(100*time.Millisecond))
	third, others := s.led(ns, 2, second.name)
	eventually.True(s.T, "the budget keeps the one that leads, and it alone", func() bool {
		return !s.evicts(ns, third.name) && s.evicts(ns, others[0].name)
	})
}

// evicts reports whether a pod might be evicted.
func (s *site) evicts(ns, pod string) bool {
	s.Helper()
	file := filepath.Join(s.TempDir(), "eviction")
	text := fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q},
		"deleteOptions": {"dryRun": ["All"]}}`, pod, ns)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	out, err := s.Try("create", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+pod+"/eviction", "-f", file)
	if err != nil && !strings.Contains(out, "disruption budget") {
		s.Fatalf("evict %s: %v\n%s", pod, err, out)
	}
	return err == nil
}

func (s *site) helm(verb, ns string, args ...string) {
	s.Helper()
	out, err := tool(s.T, "helm", append([]string{"--kubeconfig", s.Kubeconfig(), verb, "scrimp", "helm/scrimp", "--namespace", ns, "--set-string",
		"storage.kind=postgres,image.repository=localhost/scrimp,image.tag=1"}, args...)...)
	if err != nil {
		s.Fatalf("helm %s: %v\n%s", verb, err, out)
	}
	if !strings.Contains(out, "port-forward service/scrimp") {
		s.Errorf("no notes:\n%s", out)
	}
}
