package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// aws watches EC2's metadata, version 2 (session tokens), with version 1 as the fallback if the
// service issues no tokens.
type aws struct {
	base  string
	http  *http.Client
	token string
	v1    bool      // the service has no tokens
	until time.Time // time in the last reported notice
	moved bool      // a rebalance recommendation was reported
	polls int
}

const (
	awsToken      = "/latest/api/token"
	awsAction     = "/latest/meta-data/spot/instance-action"
	awsRebalance  = "/latest/meta-data/events/recommendations/rebalance"
	tokenLifetime = "21600"
)

func (w *aws) poll(ctx context.Context) ([]Notice, error) {
	var out []Notice
	var action struct {
		Action string    `json:"action"` // terminate, stop or hibernate: each ends the machine
		Time   time.Time `json:"time"`
	}
	there, err := w.get(ctx, awsAction, &action)
	if err != nil {
		return nil, err
	}
	// Report the time again only if it becomes earlier: some services move it forward with each response.
	if there && (w.until.IsZero() || action.Time.Before(w.until.Add(-time.Second))) {
		w.until = action.Time
		out = append(out, Notice{Source: "aws", Until: action.Time.UTC()})
	}
	if w.polls++; !w.moved && w.polls%3 == 1 { // advice is not urgent
		var advice struct {
			NoticeTime time.Time `json:"noticeTime"`
		}
		there, err := w.get(ctx, awsRebalance, &advice)
		if err != nil {
			return out, err
		}
		if there {
			w.moved = true
			out = append(out, Notice{Source: "aws", Advice: true})
		}
	}
	return out, nil
}

// get reads a JSON document and reports whether it exists.
func (w *aws) get(ctx context.Context, path string, into any) (bool, error) {
	body, there, err := w.read(ctx, path)
	if err != nil || !there {
		return false, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// read reads a document and reports whether it exists. The metadata service answers 404 if it does not.
func (w *aws) read(ctx context.Context, path string) (body []byte, there bool, err error) {
	for range 2 {
		header := map[string]string{}
		if !w.v1 && w.token == "" {
			if err := w.renew(ctx); err != nil {
				return nil, false, err
			}
		}
		if w.token != "" {
			header["X-aws-ec2-metadata-token"] = w.token
		}
		a, err := ask(ctx, w.http, answerTime, http.MethodGet, w.base+path, header)
		switch {
		case err != nil:
			return nil, false, err
		case a.status == http.StatusUnauthorized: // the token has expired
			w.token, w.v1 = "", false
			continue
		case a.status == http.StatusNotFound:
			return nil, false, nil
		case a.status != http.StatusOK:
			return nil, false, fmt.Errorf("read %s: status %d", path, a.status)
		}
		return a.body, true, nil
	}
	return nil, false, fmt.Errorf("read %s: the metadata service refuses its own token", path)
}

func (w *aws) renew(ctx context.Context) error {
	a, err := ask(ctx, w.http, answerTime, http.MethodPut, w.base+awsToken,
		map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": tokenLifetime})
	switch {
	case err != nil:
		return err
	case a.status == http.StatusOK && len(a.body) > 0:
		w.token = string(a.body)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		w.v1 = true
	default:
		return fmt.Errorf("request a metadata token: status %d", a.status)
	}
	return nil
}
