package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// journal saves the progress of a purge in a file, so that a purge can be resumed. If the
// process dies before it saves the progress of a page, the page is purged again, which does
// no harm.
type journal struct {
	file string // the path of the file; "" if the progress is not saved

	Purge purgeIdentity `json:"purge"`
	After string        `json:"after"` // the key of the last item of the last page that was purged
	Kept  time.Time     `json:"kept"`  // when the file was written

	// What the purge has done and found so far, for its report.
	Sum   dynamostore.PurgeProgress `json:"sum"`
	Found *findings                 `json:"found"`
}

// purgeIdentity identifies a purge: its table, the records that it selects, and its
// options. A purge must not resume from the journal of another purge, because it would
// skip items that were never examined.
type purgeIdentity struct {
	Table      string `json:"tableARN"` // contains the partition, Region and account
	TableID    string `json:"tableID"`  // distinguishes the table from one that was restored or created under the same name
	Region     string `json:"region"`
	Endpoint   string `json:"endpoint,omitempty"`   // "" for the endpoint of AWS
	Attributes string `json:"attributes,omitempty"` // the renamed attributes
	Filter     filter `json:"filter"`
	Forget     bool   `json:"forget"`
	Steps      bool   `json:"steps"`
	DryRun     bool   `json:"dryRun"`
	Reason     string `json:"reason"` // with another reason, the purge starts anew, because matching items may have been written since
}

// differences describes how two purges differ, by the names of flags where possible. It
// returns nil if they are the same.
func (p purgeIdentity) differences(other purgeIdentity) (names []string) {
	for _, one := range []struct {
		name    string
		differs bool
	}{
		{"the table", p.Table != other.Table},
		{"the table's id (it was created anew)", p.Table == other.Table && p.TableID != other.TableID},
		{"the Region", p.Region != other.Region},
		{"the endpoint", p.Endpoint != other.Endpoint},
		{"--attribute", p.Attributes != other.Attributes},
		{"which records are purged", p.Filter != other.Filter},
		{"--forget", p.Forget != other.Forget},
		{"--steps", p.Steps != other.Steps},
		{"--dry-run", p.DryRun != other.DryRun},
		{"--reason", p.Reason != other.Reason},
	} {
		if one.differs {
			names = append(names, one.name)
		}
	}
	return names
}

// identity returns the identity of this purge. It reads the table's ARN and id from
// DynamoDB, because the name alone may also exist in another Region or account.
func (p *purgeCommand) identity(ctx context.Context, c *connection, client *dynamodb.Client) (purgeIdentity, error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(c.table)})
	if err != nil {
		return purgeIdentity{}, fmt.Errorf("find out which table --state is for, which needs dynamodb:DescribeTable: %w", err)
	}
	var attributes []string
	for _, standard := range slices.Sorted(maps.Keys(c.attributes)) {
		if name := c.attributes[standard]; name != standard {
			attributes = append(attributes, fmt.Sprintf("%s=%q", standard, name))
		}
	}
	o := client.Options()
	return purgeIdentity{
		Table: aws.ToString(out.Table.TableArn), TableID: aws.ToString(out.Table.TableId),
		Region: o.Region, Endpoint: aws.ToString(o.BaseEndpoint), Attributes: strings.Join(attributes, ","),
		Filter: p.filter, Forget: p.forget, Steps: p.steps, DryRun: p.dryRun, Reason: p.reason,
	}, nil
}

// openJournal returns the journal in file, or a new journal if file does not exist. It
// returns an error if file is the journal of another purge.
func openJournal(file string, purge purgeIdentity) (*journal, error) {
	j := &journal{file: file, Purge: purge, Found: newFindings()}
	text, err := os.ReadFile(file) //nolint:gosec // a file that the operator has chosen
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read --state: %w", err)
	}
	var kept journal
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("--state %s is not a journal of a purge: %w", file, err)
	}
	if different := kept.Purge.differences(purge); len(different) > 0 {
		return nil, fmt.Errorf("--state %s is the journal of another purge, of %s; these differ: %s. Use the same table and flags, or another file",
			file, cmp.Or(kept.Purge.Table, "an unknown table"), strings.Join(different, ", "))
	}
	if kept.Found == nil || kept.Found.Flags == nil || kept.Found.IDPrefixes == nil {
		return nil, fmt.Errorf("--state %s has nothing for the report of the part that is done: an older version wrote it. Use another file to begin anew", file)
	}
	j.After, j.Sum, j.Found, j.Kept = kept.After, kept.Sum, kept.Found, kept.Kept
	return j, nil
}

// keep records the progress, and writes the file if there is one. It replaces the file
// atomically, so a crash leaves the old journal or the new one.
func (j *journal) keep(sum dynamostore.PurgeProgress) error {
	if j.After, j.Sum = sum.After, sum; j.file == "" {
		return nil
	}
	j.Kept = time.Now().UTC()
	text, err := json.Marshal(j)
	if err != nil { // can't happen: a journal has only strings, numbers and times
		return fmt.Errorf("keep the progress: %w", err)
	}
	next := filepath.Join(filepath.Dir(j.file), "."+filepath.Base(j.file)+".next")
	const ownersOnly = 0o600
	if err := os.WriteFile(next, text, ownersOnly); err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	if err := os.Rename(next, j.file); err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	return nil
}

// add returns the total progress of a purge that was resumed. before is the progress until
// it stopped, and since is the progress after it was resumed.
func add(before, since dynamostore.PurgeProgress) dynamostore.PurgeProgress {
	since.Looked += before.Looked
	since.Matched += before.Matched
	since.Purged += before.Purged
	since.OnlyErased += before.OnlyErased
	since.Before += before.Before
	since.Changed += before.Changed
	since.InProgress += before.InProgress
	since.Parts += before.Parts
	since.Orphans += before.Orphans
	since.KeptParts += before.KeptParts
	since.KeptSteps += before.KeptSteps
	since.Undecided += before.Undecided
	since.InnerCalls += before.InnerCalls
	since.Foreign += before.Foreign
	since.Units += before.Units
	since.Elapsed += before.Elapsed
	return since
}

// done removes the file after the purge is complete. The same command then starts a new
// purge.
func (j *journal) done() error {
	if j.file == "" {
		return nil
	}
	if err := os.Remove(j.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove --state: %w", err)
	}
	return nil
}
