//go:build !local

package aws

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/must"
)

// site is a private cloud with credentials for it in the environment.
type site struct {
	testing.TB
	*awstest.Server
	with setting.With
}

// newSite starts a cloud. Tests with a site do not run in parallel: credentials belong to the process.
func newSite(t testing.TB, o awstest.Options) *site {
	t.Helper()
	c, err := awstest.New(o)
	must.Do(t, err)
	t.Cleanup(c.Close)
	setenv(t, map[string]string{"AWS_ACCESS_KEY_ID": c.Key, "AWS_SECRET_ACCESS_KEY": c.Secret, "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
		"AWS_PROFILE": ""})
	return &site{t, c, setting.With{Region: "us-east-1", Endpoint: c.URL, Types: []string{"c7i.*", "m7i.large", "g5.xlarge"},
		Image: "ami-0000000000000a64a", Disk: "20GiB", DiskRate: "0.08"}}
}

func setenv(t testing.TB, env map[string]string) {
	t.Helper()
	for k, v := range env {
		t.Setenv(k, v)
	}
}

// driver returns a driver of the site that retries without delay.
func (s *site) driver() *Driver {
	s.Helper()
	e, err := Open(s.Context(), engine.Setting{Name: "aws", Kind: Kind, Agents: "http://10.0.0.1:7077",
		With: engine.WithOf(s.with)}, engine.Host{})
	must.Do(s, err)
	d, ok := e.Driver.(*Driver)
	if !ok {
		s.Fatal("another driver")
	}
	d.with.Backoff = 0
	return d
}

// order sends a command to the cloud's control path, around its faults.
func (s *site) order(name string) []byte {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL+"/_test/"+name, nil)
	must.Do(s, err)
	r.Header.Set("Authorization", "Bearer "+s.Token)
	out, err := http.DefaultClient.Do(r)
	must.Do(s, err)
	defer func() { _ = out.Body.Close() }()
	text, err := io.ReadAll(out.Body)
	must.Do(s, err)
	return text
}

// foreign rents a machine without our tags.
func (s *site) foreign(t testing.TB) string {
	t.Helper()
	a, err := account.Connect(t.Context(), &s.with)
	must.Do(t, err)
	out, err := a.EC2.RunInstances(t.Context(), &ec2.RunInstancesInput{ImageId: &s.with.Image, MinCount: sdk.Int32(1),
		MaxCount: sdk.Int32(1), InstanceType: "c7i.xlarge"})
	must.Do(t, err)
	return sdk.ToString(out.Instances[0].InstanceId)
}

// again is a driver that can be replaced, as when its server is killed and started again.
type again struct {
	mu sync.Mutex
	*Driver
}

func (a *again) now() *Driver {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Driver
}

func (a *again) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	return a.now().Launch(ctx, q)
}
func (a *again) Cancel(ctx context.Context, key string) error        { return a.now().Cancel(ctx, key) }
func (a *again) Terminate(ctx context.Context, id string) error      { return a.now().Terminate(ctx, id) }
func (a *again) List(ctx context.Context) ([]engine.Instance, error) { return a.now().List(ctx) }
