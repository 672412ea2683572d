package powertools

// appendDotNet appends v as JsonElement.ToString of .NET returns it. A string is decoded, and
// written without quotation marks. true and false become True and False. null becomes nothing. Any
// other value is written as it stands in the JSON text.
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
