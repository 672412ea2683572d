package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/pflag"

	"iter"
	"maps"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// connection has the values of the flags that describe the table and how to connect to it.
type connection struct {
	table, profile, region, endpoint string
	attributes                       map[string]string // --attribute: the names of renamed attributes, by their standard names
	leaseIndex                       string
	leaseShards                      int
	keys                             keys
}

// Environment variables that set the defaults of --table and --lease-index.
const (
	tableVariable = "IDEM_TABLE"
	indexVariable = "IDEM_LEASE_INDEX"
)

func (c *connection) flags(f *pflag.FlagSet) {
	f.StringVar(&c.table, "table", os.Getenv(tableVariable), "the table's name or ARN; default: $"+tableVariable)
	f.StringVar(&c.profile, "profile", "", "a profile of the shared configuration; default: $AWS_PROFILE")
	f.StringVar(&c.region, "region", "", "the table's Region; default: $AWS_REGION, or the profile's")
	f.StringVar(&c.endpoint, "endpoint-url", "", "the URL of DynamoDB; default: $AWS_ENDPOINT_URL_DYNAMODB, or the endpoint of AWS")
	f.StringVar(&c.leaseIndex, "lease-index", os.Getenv(indexVariable), "the table's index of leases, dynamostore.Options.LeaseIndex; default: $"+indexVariable+", or none")
	f.IntVar(&c.leaseShards, "lease-shards", 0, "dynamostore.Options.LeaseShards; 0: the default")
	c.keys.flags(f)
	f.StringToStringVar(&c.attributes, "attribute", nil, "a renamed attribute: its standard name and its name in the table, such as id=pk; may be repeated")
}

// renamed has the attributes that --attribute can rename, by their standard names, and for
// each the option that renames it.
var renamed = map[string]func(*dynamostore.Options) *string{
	"id":                     func(o *dynamostore.Options) *string { return &o.IDAttribute },
	"sort-key":               func(o *dynamostore.Options) *string { return &o.SortKeyAttribute },
	"status":                 func(o *dynamostore.Options) *string { return &o.StatusAttribute },
	"expiration":             func(o *dynamostore.Options) *string { return &o.ExpirationAttribute },
	"in_progress_expiration": func(o *dynamostore.Options) *string { return &o.InProgressExpirationAttribute },
	"data":                   func(o *dynamostore.Options) *string { return &o.DataAttribute },
	"validation":             func(o *dynamostore.Options) *string { return &o.ValidationAttribute },
}

// awsConfig returns the AWS configuration from the environment, the shared configuration
// files, and the flags.
func (c *connection) awsConfig(ctx context.Context) (aws.Config, error) {
	var options []func(*config.LoadOptions) error
	if c.profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.profile))
	}
	if c.region != "" {
		options = append(options, config.WithRegion(c.region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if cfg.Region == "" {
		return cfg, usage(errors.New("no Region is set; use --region, AWS_REGION or a profile that has one"))
	}
	return cfg, nil
}

// store returns a Store for the table of the flags, and the client that it uses. The error
// is a usage error if the flags are wrong.
func (c *connection) store(ctx context.Context) (s *dynamostore.Store, client *dynamodb.Client, err error) {
	if c.table == "" {
		return nil, nil, usage(errors.New("which table? Use --table or " + tableVariable))
	}
	for name := range c.attributes {
		if renamed[name] == nil {
			return nil, nil, usage(fmt.Errorf("--attribute: %q can't be renamed; %s can", name, strings.Join(slices.Sorted(keysOf(renamed)), ", ")))
		}
	}
	cfg, err := c.awsConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	encryption, err := c.keys.encryption(cfg)
	if err != nil {
		return nil, nil, err
	}
	client = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if c.endpoint != "" {
			o.BaseEndpoint = aws.String(c.endpoint)
		}
		// DynamoDB Local sends no checksum with an error response. The SDK takes the
		// missing checksum for 0 and would log a warning for each such response.
		o.DisableValidateResponseChecksum = c.endpoint != "" || os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != ""
	})
	// New panics if the table's name is invalid. Here that is a mistake in the command
	// line, so turn the panic into a usage error.
	defer func() {
		if v := recover(); v != nil {
			s, client, err = nil, nil, usage(fmt.Errorf("%v", v))
		}
	}()
	s = dynamostore.New(client, c.table, func(o *dynamostore.Options) {
		o.Attempts = 6 // a person can wait longer than a function
		o.LeaseIndex, o.LeaseShards = c.leaseIndex, c.leaseShards
		o.Encryption = encryption
		for name, is := range c.attributes {
			*renamed[name](o) = is
		}
	})
	return s, client, nil
}

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
