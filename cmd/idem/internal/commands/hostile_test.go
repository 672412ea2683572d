package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// hostile is a text with which a client, or anyone who can write to the table, may try to attack
// the operator's terminal.
var hostile = strings.ToValidUTF8(unsafeText, "") + "FAKE\n" + fakeRow + "\r" + fakeRow + "\u2028" + fakeRow + "\n"

const fakeRow = "FAKE state: released"

// put writes an item to the table, without any checks.
func (d *desk) put(item map[string]any) {
	d.t.Helper()
	av, err := attributevalue.MarshalMap(item)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.client.PutItem(d.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(d.table), Item: av}); err != nil {
		d.t.Fatal(err)
	}
}

// hostileRecords writes records of each kind and state in which every text is hostile, and returns
// their ids.
func (d *desk) hostileRecords() (ids []string) {
	d.t.Helper()
	ended := time.Now().Add(-time.Hour)
	operation := map[string]any{"what": "settled" + hostile, "by": hostile, "reason": hostile, "at": ended.UnixMilli(), "attempt": 1, "token": hostile}
	record := func(id string, attributes map[string]any) {
		all := map[string]any{
			"id": id, "token": "t" + hostile, "attempt": 1, "in_progress_expiration": ended.UnixMilli(), "started_at": ended.UnixMilli(),
			"validation": hostile, "operations": []any{operation}, "expiration": time.Now().Add(time.Hour + lambdaidem.KeptAfterExpiry).Unix(),
		}
		for name, value := range attributes {
			if all[name] = value; value == nil {
				delete(all, name)
			}
		}
		d.put(all)
		ids = append(ids, id)
	}
	scope := strings.ReplaceAll(hostile, " ", "%20")
	http := scope + " POST" + " " + scope + " " + scope + " " + scope
	step := map[string]any{hostile: `"` + strings.NewReplacer("\n", "", "\r", "", "\t", "", "\x1b", "", "\a", "", "\x00", "").Replace(hostile) + `"`, "b" + hostile: hostile}
	answer := `{"statusCode":201,"headers":{"X-A` + "\u202e" + `":"` + "\u202e\u009b" + `"},"cookies":["` + "\u2066" + `"],"body":"\u001b[2J\n` + fakeRow + "\u202e" + `"}`
	completed := func(more map[string]any) map[string]any {
		more["status"], more["outcome"], more["completed_at"] = "COMPLETED", "succeeded", ended.UnixMilli()
		return more
	}
	record("lambdaidem#held"+hostile, map[string]any{"status": "INPROGRESS", "scope": http, "encoding": "steps", "steps": step, "expiration": nil})
	record("lambdaidem#dead", map[string]any{"status": "INPROGRESS", "scope": hostile, "encoding": "steps", "steps": step})
	record("lambdaidem#http", completed(map[string]any{"scope": http, "data": answer}))
	record("lambdaidem#value", completed(map[string]any{"scope": scope + "  " + scope + " " + scope, "data": `{"` + "\u202e" + `":"` + "\u009b\u200b" + `"}`}))
	record("lambdaidem#unreadable", completed(map[string]any{"scope": http, "data": hostile}))
	record("lambdaidem#failure", completed(map[string]any{"scope": http, "failure": map[string]any{"code": hostile, "type": hostile, "message": hostile, "status": 402}}))
	record("lambdaidem#no-answer", completed(map[string]any{"scope": http, "failure": map[string]any{"code": "idempotency_answer_unavailable", "message": hostile}}))
	record("lambdaidem#foreign"+hostile, map[string]any{"status": hostile, hostile: hostile})
	return ids
}

// No command prints a character of a record that a terminal would interpret, in any output format,
// on either stream.
func TestS2_NoCommandPrintsWhatATerminalActsOn(t *testing.T) {
	d := openDesk(t)
	ids := d.hostileRecords()
	lines := [][]string{
		{"leases", "--scan"}, {"watch", "--scan", "--looks", "1"}, {"check"},
		{"check", "--attribute", "expiration=" + hostile}, {"leases", "--table", hostile},
		{"purge", "--all", "--dry-run"}, {"purge", "--caller", hostile, "--dry-run"}, {"purge", "--caller", hostile, "--reason", "r"},
		{"purge", "--caller", hostile, "--reason", hostile[:60], "--yes", "--by", hostile[:30]},
	}
	for _, id := range ids {
		lines = append(lines, []string{"show", id, "--downstream", hostile}, []string{"release", id, "--reason", "r"}, []string{"settle", id, "--reason", "r", "--no-answer"},
			[]string{"release", id, "--reason", "r", "--token", hostile, "--yes"})
	}
	printed := 0
	for _, args := range lines {
		for _, format := range []string{"table", "json"} {
			for _, typed := range []string{"no\n", "yes\n", "erase\n"} {
				// Change the records only after the other commands, because that changes their
				// output.
				if typed != "no\n" && !slices.Contains([]string{"release", "settle", "purge"}, args[0]) {
					continue
				}
				g := d.typing(typed, append(args, "-o", format)...)
				out := g.out + g.err
				printed += len(out)
				what := fmt.Sprintf("%.40q -o %s", args, format)
				checkPlain(t, what, out)
				for line := range strings.Lines(out) {
					if strings.HasPrefix(strings.TrimSpace(line), fakeRow) {
						t.Errorf("%s prints a row that a client wrote:\n%s", what, out)
					}
				}
			}
		}
	}
	if printed < 10_000 {
		t.Errorf("all commands together printed %d bytes: the records were not shown", printed)
	}
}

// JSON output contains the exact values of a record, even hostile ones.
func TestS2_JSONOutputOfAHostileRecordIsExact(t *testing.T) {
	d := openDesk(t)
	ids := d.hostileRecords()
	var v recordView
	d.idem("show", ids[0], "-o", "json").want(t, exitDone).into(t, &v)
	if v.ID != ids[0] || v.Token != "t"+hostile || v.Operations[0].By != hostile || v.Operations[0].Reason != hostile || v.Fingerprint != hostile || v.Steps[hostile] == nil {
		t.Errorf("it decodes to %+v", v)
	}
	var found leasesView
	d.idem("leases", "--scan", "-o", "json").want(t, exitDone).into(t, &found)
	if len(found.Leases) != 2 || found.Leases[0].Token != "t"+hostile {
		t.Errorf("the leases decode to %+v", found)
	}
}
