//go:build !local

// Package client is a client of a cluster's API server, as one user of one namespace, for the objects with scrimp's
// labels.
package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scrimp/internal/engine/kube/pool"

	authv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
	// Queries encodes the options of requests as query parameters.
	Queries = runtime.NewParameterCodec(scheme)
)

func init() {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, authv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // a bug: the types are in this program
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
}

// Client is a cluster's API server, as one user of one namespace.
type Client struct {
	Namespace string
	Host      string
	Core      rest.Interface
	batch     rest.Interface
	Auth      rest.Interface
	Plain     rest.Interface // for paths without a group
}

// perSecond is the sustained rate of requests to an API server, and burst the most at once. The API server itself
// ensures fairness beyond that.
const perSecond, burst = 100, 200

// Connect reads the address and credentials without contacting the cluster. wrap, unless nil, sees each request.
func Connect(w *pool.With, wrap transport.WrapperFunc) (*Client, error) {
	cfg, namespace, err := configOf(w)
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	cfg.QPS, cfg.Burst = perSecond, burst
	cfg.UserAgent = "scrimp"
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	client, err := clientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's credentials: %w", err)
	}
	a := &Client{Namespace: namespace, Host: cfg.Host}
	for _, part := range []struct {
		to    *rest.Interface
		group schema.GroupVersion
		path  string
	}{{&a.Core, corev1.SchemeGroupVersion, "/api"}, {&a.batch, batchv1.SchemeGroupVersion, "/apis"},
		{&a.Auth, authv1.SchemeGroupVersion, "/apis"}, {&a.Plain, schema.GroupVersion{}, "/"}} {
		c := rest.CopyConfig(cfg)
		c.GroupVersion, c.APIPath = &part.group, part.path
		if *part.to, err = restFor(c, client); err != nil {
			return nil, fmt.Errorf("read the cluster's credentials: %w", err)
		}
	}
	return a, nil
}

// Requests and the watch share a connection. A new one replaces a connection that does not answer.
const (
	// SilentFor is how long a connection may be silent before a ping.
	SilentFor = 10 * time.Second
	// PingFor is how long the ping may remain unanswered before the connection is dropped.
	PingFor = 5 * time.Second
)

// clientFor is client-go's HTTP client, except that it drops dead connections sooner than client-go's 45 s.
func clientFor(cfg *rest.Config) (*http.Client, error) {
	c, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	trust, err := transport.TLSConfigFor(c)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: PingFor}).DialContext,
		TLSClientConfig: trust, TLSHandshakeTimeout: PingFor, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
		DisableCompression: c.DisableCompression,
		HTTP2: &http.HTTP2Config{SendPingTimeout: SilentFor, PingTimeout: PingFor,
			WriteByteTimeout: SilentFor}}
	if c.Proxy != nil {
		t.Proxy = c.Proxy
	}
	if c.DialHolder != nil {
		t.DialContext = c.DialHolder.Dial
	}
	way, err := transport.HTTPWrappersForConfig(c, t)
	return &http.Client{Transport: way, Timeout: cfg.Timeout}, err
}

func restFor(c *rest.Config, client *http.Client) (rest.Interface, error) {
	if c.GroupVersion.Version == "" {
		return rest.UnversionedRESTClientForConfigAndClient(c, client)
	}
	return rest.RESTClientForConfigAndClient(c, client)
}

// configOf returns how to reach the cluster: by a kubeconfig, or as pods do.
func configOf(w *pool.With) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = w.Kubeconfig
	if w.Kubeconfig != "" {
		if _, err := os.Stat(w.Kubeconfig); err != nil {
			return nil, "", fmt.Errorf("read kubeconfig: %w: set kubeconfig under with in engines.yaml to a file that is "+
				"there", err)
		}
	}
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: w.Context})
	if err := hasContext(loading, w.Context, rules.GetLoadingPrecedence()); err != nil {
		return nil, "", err
	}
	cfg, err := loading.ClientConfig()
	switch {
	case err == nil:
	case clientcmd.IsEmptyConfig(err):
		return nil, "", fmt.Errorf("no cluster is known: %s does not exist or names none: set kubeconfig under with in "+
			"engines.yaml, or KUBECONFIG for the server", strings.Join(rules.GetLoadingPrecedence(), ", "))
	default:
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace := w.Namespace
	if namespace == "" {
		if namespace, _, err = loading.Namespace(); err != nil {
			return nil, "", fmt.Errorf("read kubeconfig: %w", err)
		}
	}
	return cfg, namespace, nil
}

// hasContext refuses a context that the kubeconfig does not contain.
func hasContext(loading clientcmd.ClientConfig, name string, files []string) error {
	raw, err := loading.RawConfig()
	if err != nil || name == "" || raw.Contexts[name] != nil {
		return nil // the next reader reports a read error
	}
	return fmt.Errorf("there is no context %q in %s: set context under with in engines.yaml to one of %s (kubectl "+
		"config get-contexts)", name, strings.Join(files, ", "), strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
}

// In adds the namespace and resource to a request.
func (a *Client) In(r *rest.Request, resource string) *rest.Request {
	return r.Namespace(a.Namespace).Resource(resource)
}

// ClientOf returns the REST client for a resource.
func (a *Client) ClientOf(resource string) rest.Interface {
	if resource == "jobs" {
		return a.batch
	}
	return a.Core
}

// Create creates an object and updates it to the API server's version.
func (a *Client) Create(ctx context.Context, resource string, o runtime.Object, dry bool) error {
	opts := &metav1.CreateOptions{FieldManager: "scrimp"}
	if dry {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return a.In(a.ClientOf(resource).Post(), resource).VersionedParams(opts, Queries).Body(o).Do(ctx).Into(o)
}

// Get reads an object.
func (a *Client) Get(ctx context.Context, resource, name string, to runtime.Object) error {
	return a.In(a.ClientOf(resource).Get(), resource).Name(name).VersionedParams(&metav1.GetOptions{},
		Queries).Do(ctx).Into(to)
}

// Update replaces an existing object.
func (a *Client) Update(ctx context.Context, resource, name string, o runtime.Object) error {
	return a.In(a.ClientOf(resource).Put(),
		resource).Name(name).VersionedParams(&metav1.UpdateOptions{FieldManager: "scrimp"},
		Queries).Body(o).Do(ctx).Into(o)
}

// Drop deletes an object and, in the background, what it owns. It succeeds if the object does not exist.
func (a *Client) Drop(ctx context.Context, resource, name string, only *metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	err := a.In(a.ClientOf(resource).Delete(), resource).Name(name).
		Body(&metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: only}).Do(ctx).Error()
	if isGone(err) {
		return nil
	}
	return err
}

// List reads the objects of a resource that match a selector.
func (a *Client) List(ctx context.Context, resource string, opts *metav1.ListOptions, to runtime.Object) error {
	return a.In(a.ClientOf(resource).Get(), resource).VersionedParams(opts, Queries).Do(ctx).Into(to)
}

// Answers makes a minimal request, and fails if the API server does not answer this user.
func (a *Client) Answers(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, 5*time.Second, errors.New("no answer within 5 s"))
	defer stop()
	var none corev1.ConfigMapList
	err := a.List(ctx, "configmaps", &metav1.ListOptions{Limit: 1, ResourceVersion: "0",
		LabelSelector: LabelEngine + "=none-of-them"},
		&none)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Labels and annotations of all objects.
const (
	Domain            = "scrimp.dev/"
	LabelManaged      = "app.kubernetes.io/managed-by"
	LabelEngine       = Domain + "engine"
	LabelInstallation = Domain + "installation"
	LabelJob          = Domain + "job"
	LabelRecord       = Domain + "request" // id of the record
	LabelPool         = Domain + "pool"
	LabelKind         = Domain + "kind"
	KindRecord        = "record"
	DataKey           = "record.json"
)

// isGone reports whether an object no longer exists, or was replaced by another of the same name.
func isGone(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Reason == metav1.StatusReasonConflict && status.ErrStatus.Details != nil &&
		slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "uid" })
}
