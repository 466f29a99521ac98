
probabilities2R"	complaint"order"praise"question**Jõ 4:Jí¤:Jp~?JT2ˆ;2R"	complaint"order"praise"question**J~ƒ=J&ø<Jå‹?JÓÇµ>