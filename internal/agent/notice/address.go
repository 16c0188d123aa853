package notice

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// Metadata paths of a machine's address in its own network.
const (
	awsAddress   = "/latest/meta-data/local-ipv4"
	gceAddress   = "/computeMetadata/v1/instance/network-interfaces/0/ip"
	azureAddress = "/metadata/instance/network/interface/0/ipv4/ipAddress/0/privateIpAddress" + azureText
	azureText    = "?api-version=2021-02-01&format=text"
)

// Address returns the machine's own address from its metadata, or "" if the metadata has none. It
// fails if an existing service does not answer. A nil client means one without a proxy.
func Address(ctx context.Context, e Endpoints, client *http.Client) (string, error) {
	if client == nil {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		client = &http.Client{Transport: transport}
	}
	switch {
	case e.AWS != "":
		w := &aws{base: strings.TrimRight(e.AWS, "/"), http: client}
		body, _, err := w.read(ctx, awsAddress)
		return addressIn(body), err
	case e.GCE != "":
		return addressAt(ctx, client, "http://"+e.GCE+gceAddress, "Metadata-Flavor", "Google")
	case e.Azure != "":
		return addressAt(ctx, client, strings.TrimRight(e.Azure, "/")+azureAddress, "Metadata", "true")
	}
	return "", nil
}

func addressAt(ctx context.Context, client *http.Client, url, header, value string) (string, error) {
	a, err := ask(ctx, client, answerTime, http.MethodGet, url, map[string]string{header: value})
	if err != nil || a.status != http.StatusOK {
		return "", err
	}
	return addressIn(a.body), nil
}

// addressIn returns the address in a response, or "": a proxy may answer with a page.
func addressIn(body []byte) string {
	a, err := netip.ParseAddr(strings.TrimSpace(string(body)))
	if err != nil {
		return ""
	}
	return a.String()
}
