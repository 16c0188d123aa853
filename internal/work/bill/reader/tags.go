package reader

import (
	"encoding/json"
	"strings"

	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/record"
)

// tags reads the tags that scrimp gives to machines. A line with unreadable tags has none and is counted.
func (c *row) tags(l *bill.Line) {
	l.Job, l.Attempt = c.text(fieldJob), c.text(fieldAttempt)
	text := c.text(fieldTags)
	l.Untagged = c.at[fieldTags] >= 0 && (text == "" || text == "{}" || text == "[]") && l.Job == "" && l.Attempt == ""
	if text == "" || !strings.Contains(text, "crimp") && text[0] != '"' {
		return // most rows have no scrimp tag
	}
	if text != c.lastTags {
		c.lastTags = text
		c.lastRead, c.lastOK = tagsOf(text)
	}
	l.TagsUnread = !c.lastOK
	for name, value := range c.lastRead {
		switch strings.TrimPrefix(record.Key(name), "user") {
		case "scrimpjob":
			l.Job = value
		case "scrimpattempt":
			l.Attempt = value
		}
	}
}

// tagsOf parses an object {"name": "value"}, the same without braces (Azure), or a list of objects {"key": …, "value":
// …} (Google).
func tagsOf(text string) (map[string]string, bool) {
	if text[0] == '[' {
		var list []struct{ Key, Value string }
		if json.Unmarshal([]byte(text), &list) != nil {
			return nil, false
		}
		tags := map[string]string{}
		for _, t := range list {
			tags[t.Key] = t.Value
		}
		return tags, true
	}
	if text[0] != '{' {
		text = "{" + text + "}"
	}
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return nil, false
	}
	tags := map[string]string{}
	for name, value := range object {
		if s, ok := value.(string); ok {
			tags[name] = s
		}
	}
	return tags, true
}
