//go:build !local

package blob

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
)

// azureDomains are the domains of Microsoft's storage: its public cloud, and those of the United States and of China.
var azureDomains = []string{"core.windows.net", "storage.azure.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn"}

// openAzure opens a container of an Azure storage account. An account key only signs and is never sent. A SAS or an
// identity's token works for anybody who has it, so it is sent to Microsoft only.
func openAzure(ctx context.Context, name string, query url.Values) (*blob.Bucket, error) {
	if name == "" {
		return nil, noName("the container's name, azblob://NAME?account=ACCOUNT")
	}
	if err := only(query, "azblob://", "account", "endpoint"); err != nil {
		return nil, err
	}
	account := cmp.Or(query.Get("account"), os.Getenv("AZURE_STORAGE_ACCOUNT"))
	if account == "" || strings.ContainsAny(account, "./:@?#") {
		return nil, fmt.Errorf("%w: no storage account: add ?account=NAME or set AZURE_STORAGE_ACCOUNT", ErrURL)
	}
	at := &url.URL{Scheme: "https", Host: account + ".blob.core.windows.net"}
	if e := query.Get("endpoint"); e != "" {
		var err error
		if at, err = endpointOf(e); err != nil {
			return nil, err
		}
	}
	r := remote{name: "container " + name + " of the Azure storage account " + account, at: at.Host,
		keys: "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, run az login, or give the " +
			"machine an identity with the role Storage Blob Data Contributor"}
	client, err := azureClient(ctx, r, at, name, account)
	if err != nil {
		return nil, err
	}
	b, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return r.reach(ctx, b, "")
}

// azureRetries and the pauses bound the retries of a call to Azure: 5 s in all. The caller retries, too.
const (
	azureRetries = 4
	azurePause   = 200 * time.Millisecond
)

// azureClient uses the first available credential: the account's key, a SAS, an identity.
func azureClient(ctx context.Context, r remote, at *url.URL, name, account string) (*container.Client, error) {
	u := at.JoinPath(name)
	options := &container.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: azureRetries, RetryDelay: azurePause}
	key, sas := os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN")
	if of := os.Getenv("AZURE_STORAGE_ACCOUNT"); of != "" && of != account {
		key, sas = "", "" // they belong to another account
	}
	if key != "" {
		signs, err := container.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, fmt.Errorf("%s: AZURE_STORAGE_KEY is not an account key: %w", r.name, err)
		}
		return container.NewClientWithSharedKeyCredential(u.String(), signs, options)
	}
	if !within(at, azureDomains...) {
		return nil, r.unsigned(fmt.Errorf("%s is not Microsoft's, so it gets no SAS and no identity token", at.Host))
	}
	if sas != "" {
		options.Transport = sasCarrier{sas: strings.TrimPrefix(sas, "?"), client: http.DefaultClient}
		return container.NewClientWithNoCredential(u.String(), options)
	}
	identity, err := azidentity.NewDefaultAzureCredential(nil)
	if err == nil {
		_, err = identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	}
	if err != nil {
		return nil, r.unsigned(err)
	}
	return container.NewClient(u.String(), identity, options)
}
