package kubetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/eventually"

	"go.yaml.in/yaml/v3"
)

// admin is the administrator's client for the API server. It does without kubectl, which uses half a second of
// processor time in each call for discovery.
type admin struct {
	server, token string
	http          *http.Client
}

// adminOf reads the administrator's kubeconfig.
func (c *Cluster) adminOf() (*admin, error) {
	text, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	var conf struct {
		Clusters []struct {
			Cluster struct {
				Server string `yaml:"server"`
				CA     string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User struct {
				Token string `yaml:"token"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(text, &conf); err != nil || len(conf.Clusters) != 1 || len(conf.Users) != 1 {
		return nil, fmt.Errorf("%s: %d clusters, %d users: %w", c.Kubeconfig(), len(conf.Clusters), len(conf.Users), err)
	}
	ca, err := base64.StdEncoding.DecodeString(conf.Clusters[0].Cluster.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	trust := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
	return &admin{conf.Clusters[0].Cluster.Server, conf.Users[0].User.Token, &http.Client{Timeout: 20 * time.Second,
		Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}}, nil
}

// call sends a request to the API server; body is YAML or JSON.
func (c *Cluster) call(method, path, body string) (status int, answer []byte, err error) {
	a, err := c.adminOf()
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequest(method, a.server+path, strings.NewReader(body)) //nolint:noctx // the client has a limit
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Accept", "application/json")
	if body != "" {
		r.Header.Set("Content-Type", "application/yaml")
	}
	got, err := a.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = got.Body.Close() }()
	answer, err = io.ReadAll(got.Body)
	return got.StatusCode, answer, err
}

// Create creates an object, given as YAML, unless it exists. It returns the API server's response.
func (c *Cluster) Create(t testing.TB, path, object string) []byte {
	t.Helper()
	status, answer, err := c.call(http.MethodPost, path, object)
	if err != nil || status/100 != 2 && status != http.StatusConflict {
		t.Fatalf("create at %s: %d, %v\n%s\n%s", path, status, err, answer, object)
	}
	return answer
}

// ready waits until a node is ready and Kubernetes has removed its initial taint.
func (c *Cluster) ready(t testing.TB, name string) {
	t.Helper()
	var answer []byte
	eventually.True(t, "node "+name+" is ready", func() bool {
		var err error
		_, answer, err = c.call(http.MethodGet, "/api/v1/nodes/"+name, "")
		var n struct {
			Spec   struct{ Taints []struct{ Key string } }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err != nil || json.Unmarshal(answer, &n) != nil {
			return false
		}
		for _, taint := range n.Spec.Taints {
			if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
				return false
			}
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == "Ready" && cond.Status == "True" {
				return true
			}
		}
		return false
	}, func() string { return string(answer) })
}
