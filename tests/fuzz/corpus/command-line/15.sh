python - <<X
open('a','w')
