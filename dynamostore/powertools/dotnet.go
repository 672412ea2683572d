package powertools

// appendDotNet appends the data as JsonElement.ToString writes it: the text of the value, except
// that a string has no quotation marks and no escapes, that true and false begin with a capital
// letter, and that null is empty.
func appendDotNet(b []byte, v *value) []byte {
	switch v.kind {
	case kindNull:
		return b
	case kindFalse:
		return append(b, "False"...)
	case kindTrue:
		return append(b, "True"...)
	case kindString, kindNumber:
		return append(b, v.text...)
	default:
		return append(b, v.raw...)
	}
}
