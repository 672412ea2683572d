package template

import (
	"testing"
	"time"
)

// ElasticMQ accepts these attributes but does not return them, so a test against it can't check
// them.
func TestD1_QueueAttributesHaveTheRetentionAndTheSize(t *testing.T) {
	got := Queue{Retention: time.Hour, MaxBytes: 4096}.attributes()
	if got["MessageRetentionPeriod"] != "3600" || got["MaximumMessageSize"] != "4096" {
		t.Errorf("attributes %v, want a retention of 3600 s and 4096 bytes", got)
	}
}
