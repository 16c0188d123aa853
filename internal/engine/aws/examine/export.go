//go:build !local

package examine

import (
	"context"
	"fmt"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/engine"
)

// Exported checks that the bucket with the account's exported bill can be listed and read.
func (e *Examiner) Exported(ctx context.Context) engine.Finding {
	f, x := engine.Finding{Name: "bills"}, e.With.Export
	prefix := x.Prefix
	if prefix != "" {
		prefix += "/"
	}
	b, err := blob.OpenReading(ctx, x.Address, prefix)
	if err != nil {
		f.Text = err.Error()
		return f
	}
	defer func() { _ = b.Close() }() // nothing was written
	list, _, err := b.ListPage(ctx, gocloud.FirstPageToken, 1, &gocloud.ListOptions{Prefix: prefix})
	if err == nil && len(list) > 0 {
		_, err = b.Attributes(ctx, list[0].Key)
	}
	switch {
	case err != nil:
		f.Text = fmt.Sprintf("%s: let these credentials list and read there: %v", x, err)
	case len(list) == 0:
		f.Text = fmt.Sprintf("%s is empty: AWS delivers the first export within 24 hours after you create it; otherwise "+
			"correct bucket and prefix", x)
	default:
		f.OK, f.Text = true, fmt.Sprintf("%s can be listed and read; the server reads it every %v", x, x.Every)
	}
	return f
}
