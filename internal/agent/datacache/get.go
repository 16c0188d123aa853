package datacache

import (
	"context"

	"scrimp/internal/lib/money"
)

// Watch hears how much of a file lies at a path while it is fetched. What is there is verified only once Get returns.
type Watch func(path string, bytes int64)

func (w Watch) at(path string, bytes int64) {
	if w != nil {
		w(path, bytes)
	}
}

// Files lists the files of a source by name.
func Files(ctx context.Context, src Source) ([]File, error) {
	files, err := src.List(ctx)
	if err == nil {
		err = checkNames(files)
	}
	return files, err
}

// NewHold returns a hold on no files.
func (c *Cache) NewHold() *Hold { return &Hold{c: c} }

// Get returns the path of a verified file of a source, and adds it to a hold. It fetches the file if the cache lacks
// it; hit reports that it did not, and sent is what the source has sent.
func (c *Cache) Get(ctx context.Context, src Source, f File, gigabyte *money.Rate, h *Hold, watch Watch) (path string,
	hit bool, sent int64, err error) {
	if missing := c.missing(src, []File{f}, h); missing > 0 { // to reserve room evicts others, even if it cannot suffice
		if err := c.fits(missing); err != nil {
			return "", false, 0, err
		}
	}
	digest, hit, sent, err := c.ensure(ctx, src, f, gigabyte, h, watch)
	if err != nil {
		return "", false, sent, err
	}
	return c.object(digest), hit, sent, nil
}
